"""Watch a series night by night for a change that lasts: means of the newest nights against the level before them.

An alarm of night t uses nights up to t only, so later nights never revoke it.
"""

from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats
from bench.student import quantile
from bench.trends.robust import KEPT_DEGREES, SD_MIN, TINY, lag_one, mad_sd, sd_with_before

ALARM_P = 0.0012  # of one night's look, by Student's t: few nights of baseline must be farther off
NEWEST_MIN, NEWEST_MAX = 3, 5  # nights whose mean is held against the level
CLIP = 3.0  # sd, of a new night
BASELINE_CLIP = 3.0  # sd, of a night of the baseline
BASELINE_MAX, BASELINE_MIN = 120, 12
RHO_NIGHTS, RHO_MAX = 20, 0.6
SAFE = 0.5
RHO_SURE = 1.5  # standard errors beyond which neighbouring nights are alike
MEDIAN_SHARE = 0.8  # of the mean
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
            before = _level(_baseline(x, start, night), before)[1]
            start = alarm.since
    return found


def alarm_tonight(level: Floats, sd_before: float | None, min_effect: float = 0.01) -> Alarm | None:
    """The alarm of the last night of a level, if it raises one; `sd_before` is the noise of the level before it."""
    return _alarm(np.log(level), 0, sd_before, min_effect)


def _alarm(x: Floats, start: int, before: float | None, min_effect: float) -> Alarm | None:
    night = len(x) - 1
    baseline = _baseline(x, start, night)
    if len(baseline) < (BASELINE_MIN if before is None else 3):
        return None
    centre, sd, inflation = _level(baseline, before)
    newest = x[max(start, night + 1 - NEWEST_MAX) : night + 1][::-1] - centre
    count, t = _farthest(newest, (sd, inflation, len(baseline)), float(np.log1p(min_effect)))
    if abs(t) <= quantile(ALARM_P, max(len(baseline) - 1, KEPT_DEGREES if before else 1)):
        return None
    return Alarm(night, night + 1 - count, is_rise=t > 0)


def _baseline(x: Floats, start: int, night: int) -> Floats:
    """The nights of the current level, without the newest ones while there are enough others."""
    end = night + 1 - NEWEST_MAX
    if end - start < BASELINE_MIN:
        end = night + 1 - NEWEST_MIN
    return x[max(start, end - BASELINE_MAX) : max(end, start)]


def _farthest(newest: Floats, level: tuple[float, float, int], least: float) -> tuple[int, float]:
    """How many of the newest nights, newest first, are farthest off by their mean, and by how many standard errors.

    Their median must be nearly as far off, so that one or two odd nights raise no alarm.
    """
    sd, inflation, n = level
    clipped = np.clip(newest, -CLIP * sd, CLIP * sd)
    best = (NEWEST_MIN, 0.0)
    for count in range(NEWEST_MIN, len(newest) + 1):
        mean = float(clipped[:count].mean())
        if abs(mean) < least or float(np.median(newest[:count])) / mean < MEDIAN_SHARE:
            continue
        t = mean / (sd * inflation * float(np.sqrt(1 / count + CENTRE_COST / n)))
        best = max(best, (count, t), key=lambda one: abs(one[1]))
    return best


def _level(baseline: Floats, before: float | None) -> tuple[float, float, float]:
    """The centre, the sd of a night about it, and by how much nights that are alike make a mean less certain."""
    n = len(baseline)
    centre = float(np.median(baseline))
    residuals = baseline - centre
    scale = max(mad_sd(baseline), TINY)
    kept = np.clip(residuals, -BASELINE_CLIP * scale, BASELINE_CLIP * scale)
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
