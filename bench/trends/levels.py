"""The levels of a series between its changes, each with the band in which a further night is expected."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from bench.trends.changes import Z_975
from bench.trends.robust import mad_sd, median
from bench.trends.series import Point, Series

BAND_NIGHTS = 5  # fewer have no band


@dataclass(frozen=True)
class Level:
    """The valid nights from one change to the next; 95 % of further nights lie from `low` to `high`, None where few."""

    first: datetime
    last: datetime
    median: float
    low: float | None
    high: float | None


def levels_of(series: Series, starts: Sequence[datetime]) -> list[Level]:
    """The levels, of which each but the first begins at a change."""
    nights = [night for night in series.valid if night.value > 0]
    stamps = [night.at for night in nights]
    begins = sorted({bisect_left(stamps, start) for start in starts} - {0, len(nights)})
    return list(_levels(nights, [0, *begins, len(nights)])) if nights else []


def _levels(nights: Sequence[Point], edges: Sequence[int]) -> Iterator[Level]:
    for start, end in pairwise(edges):
        x = np.log([night.value for night in nights[start:end]])
        middle = median(x)
        margin = Z_975 * mad_sd(x) * float(np.sqrt(1 + 1 / len(x))) if len(x) >= BAND_NIGHTS else None
        low, high = (None, None) if margin is None else (float(np.exp(middle + side * margin)) for side in (-1, 1))
        yield Level(nights[start].at, nights[end - 1].at, float(np.exp(middle)), low, high)
