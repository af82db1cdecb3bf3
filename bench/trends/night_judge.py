"""Judge one night against the current segment: a prediction interval on night means, never a verdict without power."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.metrics import Floats
from bench.student import p_two_sided, quantile
from bench.trends.robust import KEPT_DEGREES, TINY, level_sd, mad_sd, median, sd_with_before
from bench.trends.series import Point
from bench.trends.weights import weighed

Judgement = Literal["insufficient", "suspect", "confirmed", "host outlier", "equivalent", "inconclusive"]

BASELINE_MAX, BASELINE_MIN, RESTARTED_MIN = 30, 8, 3
SUSPECT_P, CONFIRMED_P, AGREES_P = 0.005, 5e-4, 0.05
MDE_P, POWER_Z = 0.001, 1.28  # of the smallest change that is found nine times of ten
SLOPE_MAX = 1.2
COUPLED_P = 0.01
# The smallest change that counts, as a share: of throughput, of a median latency, of a tail.
MIN_EFFECT = {"throughput": 0.02, "p9": 0.05, "ttft": 0.03, "tpot": 0.03, "itl": 0.03, "e2el": 0.03}


@dataclass(frozen=True)
class NightVerdict:
    """A night's verdict; percents. `mde_pct` is the smallest change that would be found nine times of ten."""

    judgement: Judgement
    baseline_nights: int
    effect_pct: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    p: float | None = None
    mde_pct: float | None = None
    slope: float = 0.0  # of the control; 0: not used
    reason: str = ""


@dataclass(frozen=True)
class _Level:
    centre: float
    sd: float
    nights: int
    degrees: int
    slope: float
    control: float


def min_effect_of(metric: str) -> float:
    """The smallest change of a metric that counts, as a share."""
    return next((share for word, share in MIN_EFFECT.items() if word in metric.lower()), 0.02)


def judge_night(
    segment: Sequence[Point], tonight: Point, min_effect: float, sd_before: float | None = None
) -> NightVerdict:
    """Judge a night by the valid nights of its segment, oldest first; `sd_before` is the noise before the segment."""
    level = _level([night for night in segment if night.is_valid], sd_before)
    if level is None:
        return NightVerdict("insufficient", len(segment), reason=f"{len(segment)} nights are too few to compare with")
    off, error = _off(level, tonight), float(np.sqrt(_sd(level, tonight) ** 2 + level.sd**2 / level.nights))
    p = p_two_sided(off / error, level.degrees)
    margin = quantile(0.05, level.degrees) * error
    mde = (quantile(MDE_P, level.degrees) + POWER_Z) * error
    bound = float(np.log1p(min_effect))
    judgement: Judgement = "inconclusive"
    if p < SUSPECT_P and abs(off) >= bound:
        judgement = "suspect"
    elif abs(off) + margin <= bound:
        judgement = "equivalent"
    return _verdict(judgement, level, (off, margin, p, mde))


def confirm(
    segment: Sequence[Point], first: Point, again: Point, min_effect: float, sd_before: float | None = None
) -> NightVerdict:
    """Judge a suspect night and its re-run on another host: both must agree, and their mean be off far enough."""
    level = _level([night for night in segment if night.is_valid], sd_before)
    if level is None:
        return NightVerdict("insufficient", len(segment), reason=f"{len(segment)} nights are too few to compare with")
    one, other = _off(level, first), _off(level, again)
    variances, of_level = [_sd(level, night) ** 2 for night in (first, again)], level.sd**2 / level.nights
    off, error = (one + other) / 2, float(np.sqrt(sum(variances) / 4 + of_level))
    p = p_two_sided(off / error, level.degrees)
    margin = quantile(0.05, level.degrees) * error
    mde = (quantile(MDE_P, level.degrees) + POWER_Z) * error
    # A usual night on the same side, averaged with a slow host, would look like half of a change.
    alone = p_two_sided(other / float(np.sqrt(variances[1] + of_level)), level.degrees)
    is_confirmed = one * other > 0 and p < CONFIRMED_P and alone < AGREES_P and abs(off) >= np.log1p(min_effect)
    return _verdict("confirmed" if is_confirmed else "host outlier", level, (off, margin, p, mde))


def false_discoveries_left_out(ps: Sequence[float], share: float = 0.05) -> list[bool]:
    """Which of a night's many tests stand, so that at most this share of them is false (Benjamini and Hochberg)."""
    order = np.argsort(ps)
    passing = [rank for rank, at in enumerate(order, 1) if ps[at] <= share * rank / len(ps)]
    standing = set(order[: max(passing, default=0)].tolist())
    return [at in standing for at in range(len(ps))]


def coupling(y: Floats, k: Floats) -> float:
    """By how much the control's changes are also those of the series; 0 where that was not measured.

    From the differences of neighbouring nights, since a level shift cannot bend them; never below 0 or above 1.2.
    """
    if len(y) < BASELINE_MIN:
        return 0.0
    dy, dk = np.diff(y), np.diff(k)
    kept = np.abs(dy - median(dy)) <= 4 * max(mad_sd(dy), TINY)
    dy, dk = dy[kept] - dy[kept].mean(), dk[kept] - dk[kept].mean()
    spread, degrees = float((dk * dk).sum()), len(dy) - 2
    if degrees < 1 or spread < TINY:
        return 0.0
    slope = float((dy * dk).sum()) / spread
    error = float(np.sqrt(max(float(((dy - slope * dk) ** 2).sum()), TINY * spread) / degrees / spread))
    is_measured = slope > 0 and p_two_sided(slope / error, degrees) < COUPLED_P
    return min(slope, SLOPE_MAX) if is_measured else 0.0


def _level(nights: Sequence[Point], sd_before: float | None) -> _Level | None:
    """What the nights of a segment say of the next one; None where they are too few."""
    nights = nights[-BASELINE_MAX:]
    n = len(nights)
    if n < (BASELINE_MIN if sd_before is None else RESTARTED_MIN):
        return None
    y = np.log(weighed(nights))
    controls = [night.control for night in nights if night.control is not None]
    k, slope = np.zeros(n), 0.0
    if len(controls) == n:
        k = np.array(controls)
        slope = coupling(y, k)
    control = float(k.mean())
    y = y - slope * (k - control)
    sd = level_sd(y)
    degrees = n - 1
    if sd_before is not None and n < BASELINE_MIN:
        sd = sd_with_before(sd, n, sd_before)
        degrees += KEPT_DEGREES
    return _Level(median(y), sd, n, degrees, slope, control)


def _sd(level: _Level, night: Point) -> float:
    """The noise of a night: one whose own repeats say it less exactly than nights differ has its own."""
    return max(level.sd, night.standard_error or 0.0)


def _off(level: _Level, night: Point) -> float:
    """How far a night is from the level, on logarithms, after what the control says of its host."""
    moved = level.slope * (night.control - level.control) if night.control is not None else 0.0
    return float(np.log(night.value)) - moved - level.centre


def _verdict(judgement: Judgement, level: _Level, numbers: tuple[float, float, float, float]) -> NightVerdict:
    off, margin, p, mde = numbers
    effect, low, high, least = (float(np.expm1(each)) * 100 for each in (off, off - margin, off + margin, mde))
    reason = f"changes below {least:.1f} % would not be seen" if judgement == "inconclusive" else ""
    return NightVerdict(judgement, level.nights, effect, low, high, p, least, level.slope, reason)
