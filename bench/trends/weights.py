"""Weigh the nights of a series by how exactly their own repeats say them."""

from collections.abc import Sequence

import numpy as np

from bench.metrics import Floats
from bench.trends.robust import SD_MIN, rough_sd, running_median
from bench.trends.series import Point


def weighed(nights: Sequence[Point]) -> Floats:
    """The values of these nights, in their order; one that its repeats say badly is pulled to the nights around it.

    A night whose standard error e is above the scatter s of neighbouring nights keeps (s / e)^2 of its distance, on
    logarithms, from the median of its 7 neighbours. The others keep their values.
    """
    values = np.array([night.value for night in nights])
    errors = np.array([night.standard_error or 0.0 for night in nights])
    if len(nights) < 3 or not errors.any():  # noqa: PLR2004 - two nights have no neighbour in common
        return values
    x = np.log(values)
    scatter = max(rough_sd(x), SD_MIN)
    is_wide = errors > scatter
    centre = running_median(x)
    pulled = np.exp(centre + (x - centre) * (scatter / np.maximum(errors, scatter)) ** 2)
    return np.asarray(np.where(is_wide, pulled, values))
