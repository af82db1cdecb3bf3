"""Find the changes of every series of the warehouse."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from bench.trends.changes import Change, changes_of
from bench.trends.events import event_sizes, with_events
from bench.trends.series import Series
from warehouse.trends.history_series import history_series
from warehouse.trends.own_series import own_series


@dataclass(frozen=True)
class Trends:
    """The changes of all series that match, and how many series and nights were looked at."""

    changes: tuple[Change, ...]
    series_count: int
    too_short_count: int

    def rows(self) -> list[dict[str, Any]]:
        """One object per change, as `nightbench trends --json` prints it."""
        sizes = event_sizes(self.changes)
        return [_row(change, sizes[change.event_id]) for change in self.changes]


SHORT = 10  # nights, below which a series has no change points


def find_trends(data: Path, pattern: str | None = None, *, with_weak: bool = False) -> Trends:
    """The changes of every series whose name and metric match a pattern.

    Raises UsageError if the pattern is no regular expression, or no series matches.
    """
    changes, nights, counts = list[Change](), set[date](), [0, 0]
    for series in _matching(chain(own_series(data), history_series(data)), pattern):
        counts[0] += 1
        counts[1] += len(series.valid) < SHORT
        nights |= {point.at.date() for point in series.valid}
        changes += changes_of(series)
    if not counts[0]:
        what = "no series in the warehouse" if pattern is None else f"no series matches {pattern!r}"
        raise UsageError(f"{what}: run a night, or import results with `nightbench import --history FILE`")
    found = with_events(changes, sorted(nights))
    return Trends(tuple(one for one in found if with_weak or one.state != "weak"), *counts)


def _matching(series: Iterable[Series], pattern: str | None) -> Iterator[Series]:
    try:
        wanted = re.compile(pattern or "", re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from error
    return (one for one in series if wanted.search(f"{one.key.source} {one.key.series} {one.key.metric}"))


def _row(change: Change, size: int) -> dict[str, Any]:
    key, is_worse = change.series.key, change.is_worse
    return {
        "series": key.series,
        "metric": key.metric,
        "last_good": change.last_good.night,
        "first_bad": change.first_bad.night,
        "effect_pct": round(change.effect.pct, 3),
        "ci_lo": round(change.effect.low, 3),
        "ci_hi": round(change.effect.high, 3),
        "state": change.state,
        "cause": change.cause.kind,
        "event_id": change.event_id,
        "event_series": size,
        "kind": change.kind,
        "direction": "unknown" if is_worse is None else "worse" if is_worse else "better",
        "until": None if change.until is None else change.until.night,
        "why": change.cause.sentence,
        "source": key.source,
        "unit": key.unit,
    }
