"""Histograms of times in bins of equal ratio: they add up over runs and nights, as percentiles do not.

Bin i, counted from 0, holds times from 4000^(i/64) ms on: 64 bins from 1 ms to 4 s, each 13.8 % wide, so that a
percentile is within 7 % of the exact one. The first and the last bin also hold what is shorter or longer.
"""

import math

import numpy as np

from bench.metrics import Floats, Ints, known

GAP_BINS = 64  # up to 4 s
FIRST_TOKEN_BINS = 128  # up to 4.4 hours: a request may wait in a queue
RATIO = 4000 ** (1 / 64)
_MS_PER_S = 1000.0


def histogram(times_s: Floats, bins: int) -> Ints:
    """How many of these times are in each bin; NaN is in none."""
    logs = np.log(np.maximum(known(times_s) * _MS_PER_S, 1.0))
    places = np.minimum((logs / math.log(RATIO)).astype(np.int64), bins - 1)
    return np.bincount(places, minlength=bins)


def percentile_ms(counts: Ints, q: float) -> float | None:
    """A percentile in ms, between the edges of its bin on a logarithmic scale; None of an empty histogram."""
    total = int(counts.sum())
    if not total:
        return None
    below = np.cumsum(counts)
    wanted = total * q / 100
    place = int(np.searchsorted(below, wanted))
    return float(RATIO ** (place + 1 - (below[place] - wanted) / counts[place]))
