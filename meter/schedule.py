"""Arrival times of an open loop, fixed before the first request."""

import math
import random
from collections.abc import Callable

from meter.clock import NS
from meter.plan import Load


def arrivals_ns(load: Load, count: int, seed: int) -> list[int]:
    """List ascending arrival times of `count` requests from the start of the schedule, warm-up first.

    `trace` gives its own; `constant` starts at 0 and keeps one gap; `poisson` and `gamma` draw gaps of mean 1 / rate.
    """
    if load.arrivals_s is not None:
        return [round(at * NS) for at in load.arrivals_s]
    rate_per_s = load.rate_per_s or math.inf
    if load.kind == "constant":
        return [round(number * NS / rate_per_s) for number in range(count)]
    # random() is the one method whose sequence Python promises to keep between versions.
    draw = random.Random(f"arrivals {seed}").random  # noqa: S311 -- load, not secrets
    shape = load.burstiness or 1.0
    at, times = 0.0, []
    for _ in range(count):
        at += (_exponential(draw) if load.burstiness is None else _gamma(shape, draw) / shape) / rate_per_s
        times.append(round(at * NS))
    return times


def _exponential(draw: Callable[[], float]) -> float:
    """A gap of mean 1 between independent events (exponential)."""
    return -math.log(1.0 - draw())


def _gamma(shape: float, draw: Callable[[], float]) -> float:
    """A gamma variate of this shape and scale 1, by Marsaglia and Tsang's squeeze (ACM TOMS 26, 2000)."""
    if shape < 1:
        return _gamma(shape + 1, draw) * math.pow(1.0 - draw(), 1 / shape)
    d = shape - 1 / 3
    while True:
        normal = math.sqrt(2 * _exponential(draw)) * math.cos(2 * math.pi * draw())
        cube = (1 + normal / math.sqrt(9 * d)) ** 3
        if cube > 0 and math.log(1.0 - draw()) < normal * normal / 2 + d * (1 - cube + math.log(cube)):
            return d * cube
