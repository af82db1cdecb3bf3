"""The steady window of a closed loop: the span with (nearly) all requested streams in flight, and its throughput.

Ramp and drain are in the numbers of the whole run; here they are not. The driver reports the window.
"""

import math
from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats, Ints
from bench.student import quantile

PARTS = 20  # of the window, for its slope: enough to see a bend, few enough that each holds many tokens
# Student's t, two-sided 99.9 %, of a line through them: a night has many runs, and one in a thousand may be doubted for
# nothing.
T_999 = round(quantile(0.001, PARTS - 2), 3)


@dataclass(frozen=True)
class Steady:
    """One steady window; times are seconds on the client's clock.

    `part_tokens`: output tokens of good requests, warm-up included, that arrived in each of PARTS equal parts of it.
    """

    begin_s: float
    end_s: float
    live_mean: float
    part_tokens: Floats

    @property
    def duration_s(self) -> float:
        """How long it was."""
        return self.end_s - self.begin_s

    @property
    def output_throughput_tok_per_s(self) -> float | None:
        """Output tokens that arrived inside it over its length."""
        return float(self.part_tokens.sum() / self.duration_s) if self.duration_s > 0 else None


@dataclass(frozen=True)
class Slope:
    """How much throughput changed from begin to end of a window, as a share of its mean, and the standard error.

    `autocorrelation`: of each part's distance from the line with that of the next part.
    """

    share: float
    standard_error: float
    autocorrelation: float = 0.0

    @property
    def beyond_noise(self) -> float:
        """The smallest change that the 99.9 % interval of the slope still holds; 0 where it holds none at all."""
        return max(0.0, abs(self.share) - T_999 * self.standard_error)


def part_tokens(event_s: Floats, tokens: Ints, begin_s: float, end_s: float) -> Floats:
    """Tokens of these events in each of PARTS equal parts of a window; those outside it are left out."""
    if not end_s > begin_s:
        return np.zeros(PARTS)
    part = np.floor((event_s - begin_s) * (PARTS / (end_s - begin_s)))
    part = np.minimum(part, PARTS - 1, out=part)  # the very end belongs to the last one
    part[(event_s < begin_s) | (event_s > end_s)] = PARTS
    weights = None if (tokens == 1).all() else tokens  # without weights it takes a quarter of the time
    counted = np.bincount(part.astype(np.int64), weights=weights, minlength=PARTS + 1)
    return np.asarray(counted[:PARTS], dtype=np.float64)


def slope(parts: Floats) -> Slope | None:
    """The least-squares line through the parts of a window; None where nothing came in it."""
    mean = float(parts.mean())
    if mean <= 0:
        return None
    at = (np.arange(len(parts)) + 0.5) / len(parts) - 0.5
    per_window = float((at * parts).sum() / (at * at).sum())
    residual = parts - mean - per_window * at
    variance = float((residual * residual).sum()) / (len(parts) - 2)
    autocorrelation = float((residual[1:] * residual[:-1]).sum() / (residual * residual).sum()) if variance else 0.0
    return Slope(per_window / mean, math.sqrt(variance / float((at * at).sum())) / mean, autocorrelation)
