"""The size of a step: Hodges-Lehmann difference of logarithms, with an interval by stationary bootstrap."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.metrics import Floats

BLOCK = 5  # nights, the mean length of a block: neighbouring nights are alike
REPLICATES = 400
SEED = 20261123
NIGHTS_MAX = 30  # on each side: farther nights say less of the step
ENDS = (2.5, 97.5)


@dataclass(frozen=True)
class Effect:
    """A relative change in percent with its 95 % interval."""

    pct: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves out no change."""
        return self.low > 0 or self.high < 0


def effect_of(before: Floats, after: Floats) -> Effect:
    """The change from the nights before to the nights after; values are positive, at least one a side."""
    left, right = np.log(before[-NIGHTS_MAX:]), np.log(after[:NIGHTS_MAX])
    random = np.random.default_rng(SEED)
    drawn = _resampled(right, random)[:, :, None] - _resampled(left, random)[:, None, :]
    shifts = np.median(drawn.reshape(REPLICATES, -1), axis=1)
    low, high = np.percentile(shifts, ENDS)
    return Effect(*(float(np.expm1(shift)) * 100 for shift in (np.median(right[:, None] - left), low, high)))


def _resampled(x: Floats, random: np.random.Generator) -> Floats:
    """Replicates of a segment in blocks of geometric length that wrap around its end."""
    return np.asarray(x[_places(len(x), random)])


def _places(n: int, random: np.random.Generator) -> npt.NDArray[np.integer]:
    starts = random.integers(0, n, (REPLICATES, n))
    begins = random.random((REPLICATES, n)) < 1 / BLOCK
    begins[:, 0] = True
    at = np.arange(n)
    origin = np.maximum.accumulate(np.where(begins, at, 0), axis=1)
    return np.asarray((np.take_along_axis(starts, origin, axis=1) + at - origin) % n)
