"""Find and date the steps of a series: optimal partitioning of clipped logarithms, then local dates on the raw values.

The penalty grows with the noise that remains and with its correlation from night to night. METHOD.md has the rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bench.metrics import Floats
from bench.trends.robust import TINY, lag_one, mad_sd, median, rough_sd, running_median

RESIDUAL_CLIP = 4.0  # scales; else one large late step hides the earlier ones
NEAR = 3  # nights by which the partition of the clipped values may be off
WORTH_REPEATING = 1.05
ENDS_AT_ONCE = 64


@dataclass(frozen=True)
class SegmenterOptions:
    """How sure the segmenter must be; `WEAK` reports more, and more of it is noise."""

    beta: float = 5.0
    min_size: int = 3
    clip: float = 2.0
    rho_max: float = 0.6


REPORTED = SegmenterOptions()
WEAK = SegmenterOptions(beta=4.0, min_size=2)


def change_points(values: Floats, min_effect: float = 0.01, options: SegmenterOptions = REPORTED) -> list[int]:
    """The first night of each new level, as an index; `values` are positive and of valid nights only.

    A step of the median below `min_effect`, as a share, is left out.
    """
    n = len(values)
    if n < 2 * options.min_size + 4:
        return []
    x = np.log(values)
    scale = max(rough_sd(x), _resolution(values))
    z = _clipped(x, scale, options.clip)
    penalty = options.beta * np.log(n)
    found = split(z, penalty, options.min_size)
    # A larger penalty never finds more steps.
    if found and (factor := _long_run_factor(z, found, options.rho_max)) > WORTH_REPEATING:
        found = split(z, penalty * factor, options.min_size)
    return _large_enough(values, _dated(x, found, scale), min_effect)


def split(z: Floats, penalty: float, min_size: int) -> list[int]:
    """The partition with the least squared deviation from segment means plus `penalty` a segment: where each begins."""
    n = len(z)
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(n + 1, dtype=int)
    for end, within in _within(z, min_size):
        total = best[: len(within)] + within
        before[end] = at = int(total.argmin())
        best[end] = total[at] + penalty
    found: list[int] = []
    end = int(before[n])
    while end > 0:
        found.append(end)
        end = int(before[end])
    return found[::-1]


def _within(z: Floats, min_size: int) -> Iterator[tuple[int, Floats]]:
    """For each end the squared deviations from the mean of the segments that end there, by where they begin."""
    n = len(z)
    sums, squares = (np.concatenate([[0.0], np.cumsum(power)]) for power in (z, z * z))
    places = np.arange(n + 1)
    for first in range(min_size, n + 1, ENDS_AT_ONCE):  # one by one, calls would take longer than numbers
        ends = places[first : first + ENDS_AT_ONCE, np.newaxis]
        starts = places[np.newaxis, : ends[-1, 0] - min_size + 1]
        lengths = np.maximum(ends - starts, min_size)  # those that are shorter are cut off below
        rows = squares[ends] - squares[starts] - (sums[ends] - sums[starts]) ** 2 / lengths
        for end, row in zip(ends[:, 0].tolist(), rows, strict=True):
            yield end, row[: end - min_size + 1]


def _resolution(values: Floats) -> float:
    """Half of the smallest step between two values, as a share: rounded values have no smaller noise."""
    steps = np.diff(np.unique(values))
    return 0.0 if len(steps) == 0 else float(steps.min() / median(values)) / 2


def _clipped(x: Floats, scale: float, clip: float) -> Floats:
    """The logarithms in units of their noise; a spike adds at most `clip` of them to its neighbours' median."""
    centre = running_median(x)
    z = centre + np.clip(x - centre, -clip * scale, clip * scale)
    return np.asarray((z - median(z)) / scale)


def _long_run_factor(z: Floats, found: Sequence[int], rho_max: float) -> float:
    """The variance of a long mean over that of independent noise of sd 1."""
    edges = [0, *found, len(z)]
    residuals = np.concatenate([z[a:b] - median(z[a:b]) for a, b in pairwise(edges)])
    scale = max(mad_sd(residuals), TINY)
    clipped = np.clip(residuals, -RESIDUAL_CLIP * scale, RESIDUAL_CLIP * scale)
    scale = max(scale, 0.7 * float(clipped.std()))
    rho = lag_one(residuals / scale) + len(edges) / len(z)  # the second term: bias of the residuals of few nights
    rho = min(max(rho, 0.0), rho_max)
    return max(1.0, scale**2) * (1 + rho) / (1 - rho)


def _dated(x: Floats, found: Sequence[int], scale: float) -> list[int]:
    """Each change point moved, by at most `NEAR` nights, to where the raw values fit the two levels best."""
    edges = [0, *found, len(x)]
    return [_best_date(x, (edges[at], edges[at + 1], edges[at + 2]), scale) for at in range(len(found))]


def _best_date(x: Floats, edges: tuple[int, int, int], scale: float) -> int:
    start, point, end = edges
    left, right = median(x[start:point]), median(x[point:end])
    low, high = max(start + 1, point - NEAR), min(end - 1, point + NEAR)
    to_left, to_right = np.abs(x[low:high] - left), np.abs(x[low:high] - right)
    # A night far from both levels says nothing about the date.
    is_odd = np.minimum(to_left, to_right) > RESIDUAL_CLIP * scale
    cost = np.concatenate([[0.0], np.cumsum(np.where(is_odd, 0.0, to_left - to_right))])
    best = np.flatnonzero(cost <= cost.min() + TINY) + low
    return int(min(best, key=lambda date: abs(date - point)))


def _large_enough(values: Floats, found: Sequence[int], min_effect: float) -> list[int]:
    """Without the steps below `min_effect`, the smallest first, since each merge moves the levels of its neighbours."""
    kept = list(found)
    while kept:
        levels = [median(values[a:b]) for a, b in pairwise([0, *kept, len(values)])]
        steps = [abs(right / left - 1) for left, right in pairwise(levels)]
        smallest = int(np.argmin(steps))
        if steps[smallest] >= min_effect:
            break
        del kept[smallest]
    return kept
