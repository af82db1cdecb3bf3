"""How much a statistic could have been otherwise by chance: 95 % intervals, resampled by request.

By request and not by token, because the tokens of one answer depend on each other. The seed is fixed: the same run
gives the same interval.
"""

from collections.abc import Iterator

import numpy as np

from bench.metrics import Floats, Ints

REPLICATES = 400  # the ends of the interval are then the tenth from either side
SEED = 20261121
ENDS = (2.5, 97.5)
TAIL = 5.0  # times as much of the upper end as the percentile leaves is looked at: more is never reached

Interval = tuple[float, float]


def _weights(count: int) -> Iterator[Ints]:
    """How often each request is drawn, in each replicate."""
    draw = np.random.default_rng(SEED)
    for _ in range(REPLICATES):
        yield np.bincount(draw.integers(count, size=count), minlength=count)


def tail_interval(values: Floats, request: Ints, q: float) -> Interval | None:
    """The interval of an upper percentile of values pooled over requests; None of nothing.

    `request`: of which request each value is, from 0.
    """
    if not len(values):
        return None
    per_request = np.bincount(request)
    above = 1 - q / 100
    kept = min(len(values), int(np.ceil(TAIL * above * len(values))))
    order = np.argsort(values)[::-1][:kept]
    found = []
    for drawn in _weights(len(per_request)):
        reached = np.cumsum(drawn[request[order]])
        place = int(np.searchsorted(reached, above * float(drawn @ per_request), side="right"))
        found.append(float(values[order[min(place, kept - 1)]]))
    low, high = np.percentile(found, ENDS)
    return float(low), float(high)


def ratio_interval(above: Floats, below: Floats) -> Interval | None:
    """The interval of a sum over requests divided by another one, as a share of what it is; None of nothing."""
    if not len(above) or not below.sum() > 0 or not above.sum() > 0:
        return None
    whole = above.sum() / below.sum()
    found = [(drawn @ above) / (drawn @ below) / whole for drawn in _weights(len(above))]
    low, high = np.percentile(found, ENDS)
    return float(low), float(high)
