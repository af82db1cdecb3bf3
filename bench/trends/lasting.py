"""Whether a step is one to report: it lasted, it counts, and it stands out of the scatter of its own two levels."""

import numpy as np

from bench.metrics import Floats
from bench.student import p_two_sided
from bench.trends.effect import NIGHTS_MAX
from bench.trends.robust import SD_MIN, median

LEVEL_NIGHTS = 5  # that each of the two levels lasts
STANDS_P = 1e-5  # of Student's t: the best date among many was chosen, so 0.05 would say nothing


def is_lasting(before: Floats, after: Floats, min_effect: float) -> bool:
    """Whether the change from one level to the next lasts; positive values, `min_effect` as a share.

    The scatter is not a robust one on purpose: a level whose nights lie far apart is known less exactly.
    """
    left, right = np.log(before[-NIGHTS_MAX:]), np.log(after[:NIGHTS_MAX])
    if min(len(left), len(right)) < LEVEL_NIGHTS:
        return False
    shift = abs(median(right) - median(left))
    if shift < np.log1p(min_effect):
        return False
    degrees = len(left) + len(right) - 2
    squares = sum(float(((level - median(level)) ** 2).sum()) for level in (left, right))
    error = max(float(np.sqrt(squares / degrees)), SD_MIN) * float(np.sqrt(1 / len(left) + 1 / len(right)))
    return p_two_sided(shift / error, degrees) < STANDS_P
