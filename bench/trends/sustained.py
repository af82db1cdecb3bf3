"""Watch a series night by night for a change that lasts: means of the newest nights against the level before them.

An alarm of night t uses nights up to t only, so later nights never revoke it. They may show that the level came back:
then the nights since that alarm belong to the level before it again, and what follows is held against all of them.
"""

from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats
from bench.student import quantile
from bench.trends.robust import KEPT_DEGREES, SD_MIN, TINY, lag_one, mad_sd, median, sd_with_before

ALARM_P = 0.001  # of one night's look, by Student's t: few nights of baseline must be farther off
COUNTS = (5, 10)  # of newest nights, whose mean is held against the level: large changes soon, small ones later
CLIP = 3.0  # sd, of a night, new or of the baseline
BACK = 2.5  # standard errors of the level before an alarm, within which the nights since it are that level
BASELINE_MAX, BASELINE_MIN = 120, 12
ODD = 3.0  # sd, beyond which a night of the baseline is odd
ODD_USUAL, ODD_MOST = 0.01, 0.05  # shares of odd nights: what independent nights hardly have, and what counts at most
ODD_COST = 4.0  # by how much the error of a mean grows for each share of odd nights above the usual one
RHO_NIGHTS, RHO_MAX = 12, 0.6
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


@dataclass(frozen=True)
class _Level:
    """Where a level begins, the noise of the level before it, and the level that its alarm left, by rising or not."""

    start: int = 0
    sd_before: float | None = None
    left: "_Level | None" = None
    is_rise: bool = False


@dataclass(frozen=True)
class _Noise:
    """Of `nights` of one level: their centre, the sd of a night about it, and how uncertain a mean of nights is.

    `inflation` is by how much more uncertain than that of independent nights, none of which is odd.
    """

    centre: float
    sd: float
    inflation: float
    nights: int

    def mean_off(self, nights: Floats) -> float:
        """The mean of these nights, each clipped, less the centre."""
        return float(_clipped(nights - self.centre, self.sd).mean())

    def error(self, count: int) -> float:
        """The standard error of the mean of so many nights, less the centre."""
        return float(self.sd * self.inflation * np.sqrt(1 / count + CENTRE_COST / self.nights))


def alarms(values: Floats, min_effect: float = 0.01) -> list[Alarm]:
    """Every alarm over the valid nights of a series, in order; `values` are positive."""
    x, found = np.log(values), list[Alarm]()
    level = _Level()
    for night in range(BASELINE_MIN, len(x)):
        if level.left is not None and _is_back(x[: night + 1], level, level.left):
            level = level.left
        alarm = _alarm(x[: night + 1], level, min_effect)
        if alarm is not None:
            found.append(alarm)
            sd = _noise(_split(x, level.start, night)[0], level.sd_before).sd
            level = _Level(alarm.since, sd, level, alarm.is_rise)
    return found


def _is_back(x: Floats, level: _Level, left: _Level) -> bool:
    """Whether the nights since an alarm are on the level before it after all."""
    since = x[level.start :]
    noise = _noise(x[max(left.start, level.start - BASELINE_MAX) : level.start], left.sd_before)
    t = noise.mean_off(since) / noise.error(len(since))
    return (t if level.is_rise else -t) <= BACK


def alarm_tonight(level: Floats, sd_before: float | None, min_effect: float = 0.01) -> Alarm | None:
    """The alarm of the last night of a level, if it raises one; `sd_before` is the noise of the level before it."""
    return _alarm(np.log(level), _Level(0, sd_before), min_effect)


def _alarm(x: Floats, level: _Level, min_effect: float) -> Alarm | None:
    night, before = len(x) - 1, level.sd_before
    baseline, newest = _split(x, level.start, night)
    if len(baseline) < (BASELINE_MIN if before is None else 3):
        return None
    count, t = _farthest(newest[::-1], _noise(baseline, before), float(np.log1p(min_effect)))
    if abs(t) <= quantile(ALARM_P, max(len(baseline) - 1, KEPT_DEGREES if before else 1)):
        return None
    return Alarm(night, night + 1 - count, is_rise=t > 0)


def _split(x: Floats, start: int, night: int) -> tuple[Floats, Floats]:
    """The nights of the current level that are its baseline, and the newest, as many as leave enough others."""
    end = night + 1 - min(max(night + 1 - start - BASELINE_MIN, COUNTS[0]), COUNTS[-1])
    return x[max(start, end - BASELINE_MAX) : max(start, end)], x[max(start, end) : night + 1]


def _farthest(newest: Floats, noise: _Noise, least: float) -> tuple[int, float]:
    """How many of the newest nights, newest first, are farthest off by their mean, and by how many standard errors.

    Their median must be nearly as far off, so that one or two odd nights raise no alarm.
    """
    best = (COUNTS[0], 0.0)
    for count in (one for one in COUNTS if one <= len(newest)):
        mean = noise.mean_off(newest[:count])
        if abs(mean) < least or (median(newest[:count]) - noise.centre) / mean < MEDIAN_SHARE:
            continue
        best = max(best, (count, mean / noise.error(count)), key=lambda one: abs(one[1]))
    return best


def _clipped(nights: Floats, sd: float) -> Floats:
    return np.clip(nights, -CLIP * sd, CLIP * sd)


def _noise(baseline: Floats, before: float | None) -> _Noise:
    """Of a baseline. A mean is less certain where neighbouring nights are alike, and where many nights are odd."""
    n = len(baseline)
    centre = median(baseline)
    residuals = baseline - centre
    scale = max(mad_sd(baseline), TINY)
    kept = _clipped(residuals, scale)
    odd = min(float((np.abs(residuals) > ODD * scale).mean()), ODD_MOST)
    centre += float(kept.mean())
    sd = max(float(kept.std()) * (1 + 0.8 / n), 0.7 * scale, SD_MIN)
    if before is not None and n < 2 * KEPT_DEGREES:
        sd = sd_with_before(sd, n, before)
    return _Noise(centre, sd, _alike(residuals / sd) * (1 + ODD_COST * max(0.0, odd - ODD_USUAL)), n)


def _alike(residuals: Floats) -> float:
    """By how much the error of a mean grows where neighbouring nights are alike; more where they surely are."""
    n = len(residuals)
    if n < RHO_NIGHTS:
        return 1.0
    rho, error = lag_one(residuals), 1 / np.sqrt(n)
    rho = rho + error * SAFE if rho > RHO_SURE * error else rho / 2
    rho = min(max(rho, 0.0), RHO_MAX)
    return float(np.sqrt((1 + rho) / (1 - rho)))
