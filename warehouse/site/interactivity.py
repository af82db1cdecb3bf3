"""Throughput, price and energy at fixed speeds of one user, interpolated between the loads that were measured."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from warehouse.schema.row import Row

SPEEDS = (10, 20, 30, 50, 100)  # tok/s per user
MEASURED = 0.01  # a load within 1 % of the speed was measured at it
_COLUMNS = {"tok_per_s_per_gpu": "tok/s per GPU", "usd_per_mtok": "USD per Mtok", "joules_per_token": "J per token"}


def at_fixed_speeds(points: Sequence[Row]) -> Iterator[Row]:
    """One row a setup, night and speed inside the measured range; `points` are ordered by setup, night and speed."""
    for (setup, night), group in groupby(points, key=lambda row: (row["setup"], row["night"])):
        rows = list(group)
        speeds = [row["tok_per_s_per_user"] for row in rows]
        for speed in SPEEDS:
            if speeds[0] <= speed <= speeds[-1]:
                is_measured = min(abs(one / speed - 1) for one in speeds) <= MEASURED
                cells = {title: _between(rows, column, speed) for column, title in _COLUMNS.items()}
                yield {"tok/s per user": speed, "setup": setup, "night": night, **cells,
                       "how": "measured" if is_measured else "interpolated"}  # fmt: skip


def _between(rows: Sequence[Row], column: str, speed: float) -> float | None:
    known = [(row["tok_per_s_per_user"], row[column]) for row in rows if row[column]]
    if not known or not known[0][0] <= speed <= known[-1][0]:
        return None
    return float(np.exp(np.interp(np.log(speed), *np.log(np.array(known)).T)))
