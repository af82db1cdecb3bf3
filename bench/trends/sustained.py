"""Watch a series night by night for a change that lasts: means of the newest nights against the level before them.

An alarm of night t uses nights up to t only, so later nights never revoke it.
"""

from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats
from bench.student import quantile
from bench.trends.robust import KEPT_DEGREES, SD_MIN, TINY, lag_one, mad_sd, median, sd_with_before

ALARM_P = 0.001  # of one night's look, by Student's t: few nights of baseline must be farther off
COUNTS = (4, 5, 10)  # of newest nights, whose mean is held against the level: large changes soon, small ones later
CLIP = 2.5  # sd, of a night, new or of the baseline
BASELINE_MAX, BASELINE_MIN = 120, 12
RHO_NIGHTS, RHO_MAX = 20, 0.6
SAFE = 0.5
RHO_SURE = 2.0  # standard errors beyond which neighbouring nights are alike
MEDIAN_SHARE = 0.5  # of the mean
CENTRE_COST = 1.1  # variance of the centre over that of a mean


@dataclass(frozen=True)
class Alarm:
    """A change that night `said_on` gave away and that began, as far as was known then, on night `since`."""

    said_on: int
    since: int
    is_rise: bool


def alarms(values: Floats, min_effect: float = 0.01) -> list[Alarm]:
    """Every alarm over the valid nights of a series, in order; `values` are positive."""
    x, found = np.log(values), list[Alarm]()
    start, before = 0, None
    for night in range(BASELINE_MIN, len(x)):
        alarm = _alarm(x[: night + 1], start, before, min_effect)
        if alarm is not None:
            found.append(alarm)
            before = _level(_split(x, start, night)[0], before)[1]
            start = alarm.since
    return found


def alarm_tonight(level: Floats, sd_before: float | None, min_effect: float = 0.01) -> Alarm | None:
    """The alarm of the last night of a level, if it raises one; `sd_before` is the noise of the level before it."""
    return _alarm(np.log(level), 0, sd_before, min_effect)


def _alarm(x: Floats, start: int, before: float | None, min_effect: float) -> Alarm | None:
    night = len(x) - 1
    baseline, newest = _split(x, start, night)
    if len(baseline) < (BASELINE_MIN if before is None else 3):
        return None
    centre, sd, inflation = _level(baseline, before)
    count, t = _farthest(newest[::-1] - centre, (sd, inflation, len(baseline)), float(np.log1p(min_effect)))
    if abs(t) <= quantile(ALARM_P, max(len(baseline) - 1, KEPT_DEGREES if before else 1)):
        return None
    return Alarm(night, night + 1 - count, is_rise=t > 0)


def _split(x: Floats, start: int, night: int) -> tuple[Floats, Floats]:
    """The nights of the current level that are its baseline, and the newest, as many as leave enough others."""
    end = night + 1 - min(max(night + 1 - start - BASELINE_MIN, COUNTS[0]), COUNTS[-1])
    return x[max(start, end - BASELINE_MAX) : max(start, end)], x[max(start, end) : night + 1]


def _farthest(newest: Floats, level: tuple[float, float, int], least: float) -> tuple[int, float]:
    """How many of the newest nights, newest first, are farthest off by their mean, and by how many standard errors.

    Their median must be nearly as far off, so that one or two odd nights raise no alarm.
    """
    sd, inflation, n = level
    clipped = np.clip(newest, -CLIP * sd, CLIP * sd)
    best = (COUNTS[0], 0.0)
    for count in (one for one in COUNTS if one <= len(newest)):
        mean = float(clipped[:count].mean())
        if abs(mean) < least or median(newest[:count]) / mean < MEDIAN_SHARE:
            continue
        t = mean / (sd * inflation * float(np.sqrt(1 / count + CENTRE_COST / n)))
        best = max(best, (count, t), key=lambda one: abs(one[1]))
    return best


def _level(baseline: Floats, before: float | None) -> tuple[float, float, float]:
    """The centre, the sd of a night about it, and by how much nights that are alike make a mean less certain."""
    n = len(baseline)
    centre = median(baseline)
    residuals = baseline - centre
    scale = max(mad_sd(baseline), TINY)
    kept = np.clip(residuals, -CLIP * scale, CLIP * scale)
    centre += float(kept.mean())
    sd = max(float(kept.std()) * (1 + 0.8 / n), 0.7 * scale, SD_MIN)
    if before is not None and n < 2 * KEPT_DEGREES:
        sd = sd_with_before(sd, n, before)
    return centre, sd, _inflation(residuals / sd)


def _inflation(residuals: Floats) -> float:
    """By how much the error of a mean grows where neighbouring nights are alike; more where they surely are."""
    n = len(residuals)
    if n < RHO_NIGHTS:
        return 1.0
    rho, error = lag_one(residuals), 1 / np.sqrt(n)
    rho = rho + error * SAFE if rho > RHO_SURE * error else rho / 2
    rho = min(max(rho, 0.0), RHO_MAX)
    return float(np.sqrt((1 + rho) / (1 - rho)))
