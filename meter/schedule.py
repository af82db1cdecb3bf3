"""When an open loop means to send: arrival times fixed before the first request."""

import math
import random

NS = 1_000_000_000


def arrivals_ns(kind: str, rate_per_s: float, count: int, seed: int) -> list[int]:
    """List ascending arrival times from the start of the schedule, warm-up first.

    `constant` starts at 0 and keeps one gap; `poisson` draws exponential gaps with mean 1 / rate.
    """
    if kind == "constant":
        return [round(number * NS / rate_per_s) for number in range(count)]
    draw = random.Random(f"arrivals {seed}").random  # noqa: S311 -- load, not secrets
    at, times = 0.0, []
    for _ in range(count):
        at -= math.log(1.0 - draw()) / rate_per_s
        times.append(round(at * NS))
    return times
