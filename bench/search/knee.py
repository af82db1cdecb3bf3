"""The knee of throughput over concurrency, with an interval.

The curve is X(c) = M * ((c / N)^-p + 1)^(-1/p): throughput rises in proportion to the requests in flight and approaches
M. The knee N is where the two asymptotes cross, as in operational analysis (Denning and Buzen, 1978). A sharp bend has
a large p, a server whose batches slow down gradually a p near 1. For each N and p the best M has a closed form, so the
profile of the squared error is found on a grid, and the interval of N is where it is near its least.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats

CHI2_95 = 3.841  # the 95th percentile of chi-square with one degree of freedom
SHARPNESS = np.geomspace(1.0, 32.0, 16)
STEPS = 120  # of the grid of knees, which is laid once more between the ends that it finds
BEYOND = 4.0  # the grid goes so far below the lowest level and above the highest
SHAPE_PARAMETERS = 3  # knee, sharpness and maximum


@dataclass(frozen=True)
class Knee:
    """The knee in requests in flight, and its 95 % interval; None for an end that the levels do not bound."""

    concurrency: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float:
        """Of the interval, as a share of the knee; infinite where an end is open."""
        if self.low is None or self.high is None:
            return float("inf")
        return (self.high - self.low) / 2 / self.concurrency


def fit_knee(levels: Sequence[float], throughputs: Sequence[float], se_shares: Sequence[float]) -> Knee:
    """The knee of throughputs at these levels, given the standard error of each as a share of it."""
    given = np.log(np.array(levels)), np.log(np.array(throughputs)), np.array(se_shares)
    lowest, highest = min(levels) / BEYOND, max(levels) * BEYOND
    low, best, high = _inside(np.geomspace(lowest, highest, STEPS), *given)
    if low > lowest and high < highest:
        low, best, high = _inside(np.geomspace(low, high, STEPS), *given)
    return Knee(best, low if low > lowest else None, high if high < highest else None)


def _inside(grid: Floats, level: Floats, rate: Floats, se_shares: Floats) -> tuple[float, float, float]:
    """The ends of the interval, each the next value of the grid outside of it, and the best value between them."""
    profile = _profile(grid, level, rate, se_shares)
    best = int(np.argmin(profile))
    # Where the curve does not fit within the errors, these are taken to be as large as it misses.
    excess = profile[best] / max(len(level) - SHAPE_PARAMETERS, 1)
    inside = np.flatnonzero(profile - profile[best] <= CHI2_95 * max(1.0, excess))
    first, last = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(grid) - 1)
    return float(grid[first]), float(grid[best]), float(grid[last])


def fitted(knee: Knee, levels: Sequence[float], throughputs: Sequence[float], at: Floats) -> Floats:
    """The throughput of the best curve with this knee at other levels."""
    level, rate = np.log(np.array(levels)), np.log(np.array(throughputs))
    misses, curves = [], []
    for sharpness in SHARPNESS:
        shape = _shape(level - np.log(knee.concurrency), sharpness)
        maximum = float(np.mean(rate - shape))
        misses.append(float(((rate - shape - maximum) ** 2).sum()))
        curves.append(maximum + _shape(np.log(at) - np.log(knee.concurrency), sharpness))
    return np.asarray(np.exp(curves[int(np.argmin(misses))]))


def _profile(grid: Floats, level: Floats, rate: Floats, se_shares: Floats) -> Floats:
    """The least weighted squared error of each knee of the grid, over sharpness and maximum."""
    weight = 1 / se_shares**2
    over = level[None, None, :] - np.log(grid)[:, None, None]
    rest = rate - _shape(over, SHARPNESS[None, :, None])
    maximum = (rest * weight).sum(axis=2, keepdims=True) / weight.sum()
    return np.asarray((((rest - maximum) ** 2) * weight).sum(axis=2).min(axis=1))


def _shape(over: Floats, sharpness: float | Floats) -> Floats:
    """The logarithm of throughput over the maximum, from that of concurrency over the knee."""
    return np.asarray(-np.logaddexp(0.0, -sharpness * over) / sharpness)
