"""Student's t for whole degrees of freedom, exactly, by its finite sums (Abramowitz and Stegun 26.7.3 and 26.7.4)."""

import math
from functools import lru_cache

FAR = 1e6  # beyond any quantile that is used
STEPS = 80
DEGREES_MAX = 10_000  # of a quantile by finite sums
Z_975 = 1.959963984540054  # the same quantile of the normal distribution


def p_two_sided(t: float, degrees: int) -> float:
    """The probability that the statistic is farther from zero than `t`; `degrees` from 1."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2 == 1
    term = cosine if is_odd else 1.0
    terms = term if degrees > 1 else 0.0
    for step in range(3 if is_odd else 2, degrees - 1, 2):
        term *= cosine**2 * ((step - 1) / step)
        terms += term
    inside = 2 / math.pi * (angle + sine * terms) if is_odd else sine * terms
    return max(0.0, 1.0 - inside)


@lru_cache(maxsize=1024)
def quantile(p: float, degrees: int) -> float:
    """The statistic beyond which, on both sides together, lies the share `p`."""
    low, high = 0.0, FAR
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if p_two_sided(middle, degrees) > p else (low, middle)
    return high


def t_975(degrees: int) -> float:
    """Return the quantile of a 95 % interval, two-sided, to eight decimals at least; `degrees` from 1."""
    if degrees <= DEGREES_MAX:
        return quantile(0.05, degrees)
    # The first terms of the series in 1 / degrees (Abramowitz and Stegun 26.7.5), whose sums would take long.
    first, second = Z_975**3 + Z_975, 5 * Z_975**5 + 16 * Z_975**3 + 3 * Z_975
    return Z_975 + first / (4 * degrees) + second / (96 * degrees**2)
