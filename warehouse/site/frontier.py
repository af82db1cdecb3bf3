"""The Pareto frontier of a chart, computed on the axes that it shows, and values at fixed speeds of one user."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from warehouse.schema.row import Row

SPEED = "tok_per_s_per_user"
SPEEDS = (10, 20, 30, 50, 100)  # tok/s per user
MEASURED = 0.01  # a load within 1 % of the speed was measured at it
THROUGHPUT, PRICE = "tok_per_s_per_gpu", "usd_per_mtok"
LESS_IS_BETTER = frozenset({PRICE, "joules_per_token"})
NEWEST, EARLIER = "newest", "earlier"  # the two nights of a setup, by the column `when`
_COLUMNS = {THROUGHPUT: "tok/s per GPU", PRICE: "USD per Mtok", "joules_per_token": "J per token"}


def on_frontier(points: Sequence[Row], column: str) -> list[bool]:
    """Whether each point is on the frontier of `column` over the speed of one user.

    It is where no other point is at least as good on both axes and better on one; of equal points the first. A point
    without a value is not.
    """
    sign = -1 if column in LESS_IS_BETTER else 1
    known = [(-row[SPEED], -sign * row[column], at) for at, row in enumerate(points) if row[column] is not None]
    best, found = -math.inf, set[int]()
    for _, worth, at in sorted(known):
        if -worth > best:
            best = -worth
            found.add(at)
    return [at in found for at in range(len(points))]


def frontier(points: Sequence[Row], column: str) -> list[Row]:
    """The points of the frontier, the slowest first."""
    stays = on_frontier(points, column)
    return sorted((row for row, is_on in zip(points, stays, strict=True) if is_on), key=itemgetter(SPEED))


def with_frontiers(points: Sequence[Row]) -> list[Row]:
    """The points of one workload, each with whether another of the same `when` dominates it, for each chart's axes."""
    found = list[Row]()
    for when in (EARLIER, NEWEST):
        alike = [row for row in points if row["when"] == when]
        both = zip(alike, on_frontier(alike, THROUGHPUT), on_frontier(alike, PRICE), strict=True)
        found += [row | {"is_dominated": not fast, "is_dominated_by_price": not cheap} for row, fast, cheap in both]
    return found


def value_at(points: Sequence[Row], column: str, speed: float) -> float | None:
    """The value of a frontier at a speed, between its points by logarithms; None outside of them, and of values 0."""
    known = [(row[SPEED], row[column]) for row in frontier(points, column) if row[column]]
    if not known or not known[0][0] <= speed <= known[-1][0]:
        return None
    return float(np.exp(np.interp(np.log(speed), *np.log(np.array(known)).T)))


def moved(points: Sequence[Row], column: str) -> Iterator[Row]:
    """How the frontier moved from the earlier nights to the newest ones, at each speed that both have.

    Where they share none of `SPEEDS`, in the middle of what they share; nothing where they share no speed.
    """
    before, now = ([row for row in points if row["when"] == when] for when in (EARLIER, NEWEST))
    shared = _shared(frontier(before, column), frontier(now, column))
    if shared is None:
        return
    listed = [float(one) for one in SPEEDS if shared[0] <= one <= shared[1]]
    for speed in listed or [math.sqrt(shared[0] * shared[1])]:
        old, new = value_at(before, column, speed), value_at(now, column, speed)
        if old and new:
            title = _COLUMNS[column]
            yield {"tok/s per user": speed, f"{title}, earlier": old, f"{title}, newest": new,
                   "change (%)": (new / old - 1) * 100}  # fmt: skip


def _shared(before: Sequence[Row], now: Sequence[Row]) -> tuple[float, float] | None:
    if not before or not now:
        return None
    low, high = max(before[0][SPEED], now[0][SPEED]), min(before[-1][SPEED], now[-1][SPEED])
    return (low, high) if low <= high else None


def at_fixed_speeds(points: Sequence[Row]) -> Iterator[Row]:
    """One row a setup, workload, night and speed inside the measured range; `points` are in this order."""
    for (setup, isl, osl, night), group in groupby(points, key=itemgetter("setup", "isl", "osl", "night")):
        rows = list(group)
        speeds = sorted(row[SPEED] for row in rows)
        for speed in SPEEDS:
            if speeds[0] <= speed <= speeds[-1]:
                is_measured = min(abs(one / speed - 1) for one in speeds) <= MEASURED
                cells = {title: value_at(rows, column, speed) for column, title in _COLUMNS.items()}
                yield {"tok/s per user": speed, "setup": setup, "isl": isl, "osl": osl, "night": night, **cells,
                       "how": "measured" if is_measured else "interpolated"}  # fmt: skip
