"""Scales and centres that a few odd nights do not move."""

import numpy as np

from bench.metrics import Floats

MAD_TO_SD = 1.4826  # of a normal distribution
TINY = 1e-9
KEPT_DEGREES = 15  # by which the noise before a change counts in the first nights after it
SD_MIN = 0.002  # of logarithms, that is believed


def median(x: Floats) -> float:
    """The median of values without NaN; NaN of none. numpy's takes ten times as long for the nights of a series."""
    if not len(x):
        return np.nan
    ordered = np.sort(x)
    return float((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2)


def rough_sd(x: Floats) -> float:
    """The sd of the noise from neighbouring nights: a step does not move it."""
    steps = np.diff(x)
    return float(MAD_TO_SD * median(np.abs(steps - median(steps))) / np.sqrt(2)) + 1e-12


def mad_sd(x: Floats) -> float:
    """The sd by the median of the absolute deviations from the median."""
    return float(MAD_TO_SD * median(np.abs(x - median(x))))


def level_sd(x: Floats) -> float:
    """The sd of the nights of one level, from two on; no less than what is believed of any level."""
    return max(mad_sd(x) * (1 + 0.8 / len(x)), 0.8 * float(x.std(ddof=1)), SD_MIN)


def pooled(variance: float, degrees: int, other: float, others: int) -> float:
    """The variance of two samples together, each weighed by its degrees of freedom."""
    return (variance * degrees + other * others) / (degrees + others)


def sd_with_before(sd: float, nights: int, before: float) -> float:
    """The sd of the first nights of a level with that of the level before it."""
    return float(np.sqrt(pooled(sd**2, nights, before**2, KEPT_DEGREES)))


def running_median(x: Floats, width: int = 7) -> Floats:
    """The median of the values around each one; at the ends of those that there are."""
    beyond = np.full(width // 2, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([beyond, x, beyond]), width)
    # What is missing is sorted last. np.nanmedian takes six times as long for short windows.
    ordered, known, rows = np.sort(windows, axis=1), (~np.isnan(windows)).sum(axis=1), np.arange(len(windows))
    return np.asarray((ordered[rows, (known - 1) // 2] + ordered[rows, known // 2]) / 2)


def lag_one(residuals: Floats, clip: float = 2.5) -> float:
    """The correlation of neighbouring residuals, clipped at `clip` of their sd."""
    q = np.clip(residuals, -clip, clip)
    return float((q[1:] * q[:-1]).sum() / max(float((q * q).sum()), TINY))
