"""The difference of two samples of leases: its interval by Student's t on logarithms, and what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.student import p_two_sided, quantile
from bench.trends.night_judge import MDE_P, POWER_Z, SUSPECT_P
from bench.trends.robust import KEPT_DEGREES, SD_MIN, pooled

Verdict = Literal["loss", "gain", "changed", "inconclusive", "within one lease", "equivalent"]


@dataclass(frozen=True)
class Noise:
    """The variance of a series' logarithms from lease to lease; `degrees` 0: not known."""

    variance: float = 0.0
    degrees: int = 0


@dataclass(frozen=True)
class Repeats:
    """The repeats of one lease: the standard deviation of their logarithms (None: one repeat), and their count."""

    sd: float | None
    count: int


@dataclass(frozen=True)
class Sample:
    """One side of a pair: a positive value a lease, its repeats, and the noise of its series' other leases.

    `is_fixed`: a printed number, of which no noise is known and none is assumed.
    """

    values: Sequence[float]
    repeats: Sequence[Repeats] = ()
    history: Noise = Noise()
    is_fixed: bool = False

    @property
    def centre(self) -> float:
        """The mean of the logarithms."""
        return float(np.log(self.values).mean())

    @property
    def own(self) -> Noise:
        """The noise of these leases alone."""
        n = len(self.values)
        return Noise(float(np.log(self.values).var(ddof=1)), n - 1) if n > 1 else Noise()


@dataclass(frozen=True)
class Difference:
    """The difference of the logarithms, other minus one; `error` None: no interval is known."""

    shift: float
    error: float | None
    degrees: int
    is_between_leases: bool

    @property
    def p(self) -> float | None:
        """The probability of a difference this large by chance; None where leases cannot say."""
        if self.error is None or not self.is_between_leases:
            return None
        return p_two_sided(self.shift / self.error, self.degrees)

    @property
    def margin(self) -> float | None:
        """Half of the 95 % interval."""
        return None if self.error is None else quantile(0.05, self.degrees) * self.error

    @property
    def least(self) -> float | None:
        """The smallest difference that would be found nine times of ten."""
        if self.error is None or not self.is_between_leases:
            return None
        return (quantile(MDE_P, self.degrees) + POWER_Z) * self.error


def difference_of(one: Sample, other: Sample, *, is_same_series: bool) -> Difference:
    """The difference of two samples; leases of one series have one noise, those of two have each their own (Welch).

    Where neither the leases nor their history say how leases differ, the interval is of the repeats within them.
    """
    shift = other.centre - one.centre
    parts = _pooled(one, other) if is_same_series else [_part(one), _part(other)]
    measured = [part for part in parts if part is not None]
    if len(measured) == len(parts):
        return Difference(shift, *_joined(measured), is_between_leases=True)
    within = [part for side in (one, other) if not side.is_fixed for part in _within(side)]
    stated = [part for part in within if part is not None]
    if not stated or len(stated) < len(within):
        return Difference(shift, None, 0, is_between_leases=False)
    return Difference(shift, *_joined(stated), is_between_leases=False)


def verdict_of(found: Difference, min_effect: float, *, is_lower_better: bool | None, stands: bool = True) -> Verdict:
    """What a difference is worth; `stands`: it is not one that many tests find by chance."""
    if found.margin is None or found.p is None:
        return "within one lease"
    bound = float(np.log1p(min_effect))
    if stands and found.p < SUSPECT_P and abs(found.shift) >= bound:
        if is_lower_better is None:
            return "changed"
        return "loss" if (found.shift > 0) == is_lower_better else "gain"
    return "equivalent" if abs(found.shift) + found.margin <= bound else "inconclusive"


def neighbour_noise(runs: Sequence[Sequence[float]]) -> Noise:
    """The noise by the differences of neighbouring leases, which a step moves little; each run is of one setup."""
    steps = np.concatenate([np.diff(np.log(run)) for run in runs if len(run) > 1] or [np.zeros(0)])
    m = len(steps)
    if not m:
        return Noise()
    # Neighbouring differences share a lease: von Neumann's estimate has these degrees of freedom.
    return Noise(float((steps**2).sum()) / (2 * m), max(1, int(2 * m * m / (3 * m - 1))))


Part = tuple[float, int]  # a squared standard error, and its degrees of freedom


def _pooled(one: Sample, other: Sample) -> list[Part | None]:
    noise = _with(_with(one.own, other.own), _capped(one.history))
    n = 1 / len(one.values) + 1 / len(other.values)
    return [(_floored(noise) * n, noise.degrees) if noise.degrees else None]


def _part(side: Sample) -> Part | None:
    if side.is_fixed:
        return 0.0, 1
    noise = _with(side.own, _capped(side.history))
    return (_floored(noise) / len(side.values), noise.degrees) if noise.degrees else None


def _within(side: Sample) -> list[Part | None]:
    """What the repeats of each lease say of the mean of all; one repeat says nothing."""
    shares = 1 / len(side.values) ** 2
    return [
        None
        if lease.sd is None or lease.count <= 1
        else (max(lease.sd, SD_MIN) ** 2 / lease.count * shares, lease.count - 1)
        for lease in side.repeats
    ]


def _with(one: Noise, other: Noise) -> Noise:
    degrees = one.degrees + other.degrees
    if not degrees:
        return Noise()
    return Noise(pooled(one.variance, one.degrees, other.variance, other.degrees), degrees)


def _capped(history: Noise) -> Noise:
    """What a history weighs at most: the noise of years ago is not that of today."""
    return Noise(history.variance, min(history.degrees, KEPT_DEGREES))


def _floored(noise: Noise) -> float:
    return max(noise.variance, SD_MIN**2)


def _joined(parts: Sequence[Part]) -> Part:
    """The standard error of a sum and its degrees of freedom (Welch and Satterthwaite)."""
    squared = sum(square for square, _ in parts)
    spread = sum(square**2 / degrees for square, degrees in parts)
    return float(np.sqrt(squared)), max(1, int(squared**2 / spread))
