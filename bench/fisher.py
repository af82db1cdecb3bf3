"""Quantiles of the F distribution, by which two standard deviations are compared."""

import math
from functools import lru_cache

STEPS = 400  # of Simpson's rule; even
HALVINGS = 80
FAR = 1e8  # beyond any quantile that is used


def f_below(x: float, over: int, under: int) -> float:
    """The probability that the ratio of two variances with these degrees of freedom, from 1, is below `x`.

    The regularised incomplete beta function, with t = sin² of an angle, so that nothing is infinite (Abramowitz and
    Stegun 26.5.1 and 26.6.2).
    """
    end = math.asin(math.sqrt(over * x / (over * x + under)))
    step = end / STEPS

    def density(angle: float) -> float:
        return float(2 * math.sin(angle) ** (over - 1) * math.cos(angle) ** (under - 1))

    weights = (1 if place in {0, STEPS} else 4 if place % 2 else 2 for place in range(STEPS + 1))
    area = sum(weight * density(place * step) for place, weight in enumerate(weights)) * step / 3
    return area / math.exp(math.lgamma(over / 2) + math.lgamma(under / 2) - math.lgamma((over + under) / 2))


@lru_cache(maxsize=256)
def f_975(over: int, under: int) -> float:
    """The ratio of two equal variances that is exceeded with a probability of 2.5 %; degrees of freedom from 1."""
    low, high = 0.0, FAR
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if f_below(middle, over, under) < 0.975 else (low, middle)  # noqa: PLR2004
    return high
