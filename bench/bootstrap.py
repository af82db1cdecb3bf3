"""How much a statistic could have been otherwise by chance: 95 % intervals, resampled by request.

By request and not by token, because the tokens of one answer depend on each other. The seed is fixed: the same run
gives the same interval.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np

from bench.metrics import Floats, Ints

REPLICATES = 400  # the ends of the interval are then the tenth from either side
SEED = 20261121
ENDS = (2.5, 97.5)
TAIL = 5.0  # times as much of the upper end as the percentile leaves is looked at first: more is rarely reached
DEVIATIONS = 3.0  # the end of a replicate's tail is nearly always this close to that of the run
# The draws of a run depend on its number of requests only, and a night's runs have the same: up to this many requests
# they are kept, in 40 MiB: as the floats that each product would make of them again.
KEPT_COUNT_MAX = 13_000
BLOCK = 500_000  # weights that are computed with at once
# Values that one core multiplies: of more, OpenBLAS gives each core a part, and where two runs are loaded at once and
# others keep the cores busy, the parts wait for each other for seconds, which one core does in hundredths of a second.
ALONE = 10_000

SAMPLE, MORE = 5000, 1.5  # a sample's share of the largest values, for more than are wanted

Interval = tuple[float, float]


def _weights(count: int) -> Iterator[Floats]:
    """How often each request is drawn: a row for each replicate, some rows at a time."""
    rows = max(1, BLOCK // count)
    if count <= KEPT_COUNT_MAX:
        kept = _kept_weights(count)
        yield from (kept[first : first + rows] for first in range(0, REPLICATES, rows))
        return
    drawn = _drawn_weights(count)
    while some := list(islice(drawn, rows)):
        yield np.asarray(some, dtype=np.float64)


@lru_cache(maxsize=2)
def _kept_weights(count: int) -> Floats:
    weights = np.empty((REPLICATES, count))
    for row, drawn in zip(weights, _drawn_weights(count), strict=True):
        row[:] = drawn
    return weights


def _drawn_weights(count: int) -> Iterator[Ints]:
    draw = np.random.default_rng(SEED)
    return (np.bincount(draw.integers(count, size=count), minlength=count) for _ in range(REPLICATES))


def tail_interval(values: Floats, request: Ints, q: float) -> Interval | None:
    """The interval of an upper percentile of values pooled over requests; None of nothing.

    `request`: of which request each value is, from 0.
    """
    if not len(values):
        return None
    per_request = np.bincount(request).astype(np.float64)
    above = 1 - q / 100
    order = _largest(values, min(len(values), int(np.ceil(TAIL * above * len(values)))))
    places = _tail_ends(request[order], per_request, above)
    if places.max() == len(order):  # a few requests have nearly all of the largest, and a replicate drew none of these
        order = np.argsort(values)[::-1]
        places = _tail_ends(request[order], per_request, above)
    low, high = np.percentile(values[order[np.minimum(places, len(order) - 1)]], ENDS)
    return float(low), float(high)


def _tail_ends(of: Ints, per_request: Floats, above: float) -> Ints:
    """Where the tail of each replicate ends among the largest values; their number where it ends after them.

    `of`: the request of each of these values, the largest first; `above`: the share of the values above the percentile.
    """
    begin, end = _ends_between(of, above * per_request.sum(), len(per_request))
    largest = np.bincount(of[:begin], minlength=len(per_request)).astype(np.float64)
    places = []
    for drawn in _weights(len(per_request)):
        passed = _totals(drawn, largest)
        target = above * _totals(drawn, per_request)
        reached = passed[:, np.newaxis] + np.cumsum(drawn[:, of[begin:end]], axis=1)
        place = begin + (reached <= target[:, np.newaxis]).sum(axis=1)
        for at in np.flatnonzero((passed > target) | (place == end)):
            place[at] = np.searchsorted(np.cumsum(drawn[at, of]), target[at], side="right")
        places.append(place)
    return np.concatenate(places)


def _ends_between(of: Ints, tail: float, count: int) -> tuple[int, int]:
    """Two places between which the tail of nearly every replicate ends; what is above the first is counted by request.

    `of`: the request of each of the largest values, the largest first. A request that has many of them moves the end
    further, as it is drawn or left out with all of them.
    """
    whole = min(len(of), int(np.ceil(tail)))
    deviation = float(np.sqrt((np.bincount(of[:whole], minlength=count) ** 2).sum()))
    reach = int(np.ceil(DEVIATIONS * deviation))
    return max(0, whole - reach), min(len(of), whole + reach)


def _largest(values: Floats, count: int) -> Ints:
    """The places of so many largest values, the largest first; a sample leaves out nearly all that are smaller."""
    sample = values[:: max(1, len(values) // SAMPLE)]
    floor = np.quantile(sample, max(0.0, 1 - MORE * count / len(values)))
    places = np.flatnonzero(values >= floor)
    if len(places) < count:
        places = np.arange(len(values))
    largest = places[np.argpartition(values[places], len(places) - count)[-count:]]
    return largest[np.argsort(values[largest])[::-1]]


def ratio_interval(above: Floats, below: Floats) -> Interval | None:
    """The interval of a sum over requests divided by another one, as a share of what it is; None of nothing."""
    if not len(above) or not below.sum() > 0 or not above.sum() > 0:
        return None
    whole = above.sum() / below.sum()
    found = [_totals(drawn, above) / _totals(drawn, below) / whole for drawn in _weights(len(above))]
    low, high = np.percentile(np.concatenate(found), ENDS)
    return float(low), float(high)


def _totals(drawn: Floats, values: Floats) -> Floats:
    """The sum of the values that each replicate drew."""
    parts = range(0, len(values), ALONE)
    sums = [np.vecdot(drawn[:, at : at + ALONE], values[at : at + ALONE]) for at in parts]
    return np.asarray(np.sum(sums, axis=0))
