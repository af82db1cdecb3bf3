"""Distinguish a slow drift from a step: whether a line or a step fits the nights around a change better."""

from statistics import NormalDist

import numpy as np

from bench.metrics import Floats
from bench.trends.robust import median

NIGHTS = 28
NIGHTS_MIN = 16
P = 1e-3  # of Kendall's tau without a trend


def is_drift(values: Floats, at: int) -> bool:
    """Whether values move in a line through the step at index `at`, within the 28 nights around it; positive values."""
    low, high = max(0, at - NIGHTS // 2), min(len(values), at + NIGHTS // 2)
    x = np.log(values[low:high])
    if len(x) < NIGHTS_MIN:
        return False
    before, after = x[: at - low], x[at - low :]
    step = np.concatenate([before - median(before), after - median(after)])
    line = x - _theil_sen(x) * np.arange(len(x))
    is_line = np.abs(line - median(line)).sum() < np.abs(step).sum()
    return bool(is_line) and _kendall_p(x) < P


def _pairs(x: Floats) -> tuple[Floats, Floats]:
    rows, columns = np.triu_indices(len(x), 1)
    return x[columns] - x[rows], (columns - rows).astype(float)


def _theil_sen(x: Floats) -> float:
    """The median of the slopes of all pairs, a night."""
    rises, runs = _pairs(x)
    return median(rises / runs)


def _kendall_p(x: Floats) -> float:
    """How often nights without a trend agree so much in direction; normal approximation."""
    n = len(x)
    agreeing = abs(float(np.sign(_pairs(x)[0]).sum()))
    sd = float(np.sqrt(n * (n - 1) * (2 * n + 5) / 18))
    return 2 * (1 - NormalDist().cdf(max(agreeing - 1, 0.0) / sd))
