"""Find the changes of every series of the warehouse."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from bench.trends.changes import Change, changes_of
from bench.trends.events import with_events
from bench.trends.judgement import SaidChange
from bench.trends.series import Series, SeriesKey, measured_of
from bench.trends.tonight import Known, known_of
from warehouse.lake.query import ask
from warehouse.trends.history_series import history_series
from warehouse.trends.kept import read_said
from warehouse.trends.own_series import own_series


@dataclass(frozen=True)
class Trends:
    """The changes of all series that match, one object each, and how many series were looked at."""

    changes: tuple[dict[str, Any], ...]
    series_count: int
    too_short_count: int

    def rows(self) -> list[dict[str, Any]]:
        """One object per change, as `nightbench trends --json` prints it."""
        return list(self.changes)


SHORT = 10  # nights, below which a series has no change points
_SAID = """
SELECT source, series, metric, unit, kind, last_good, first_bad, first_bad_at, until, effect_pct, ci_lo, ci_hi, state,
    direction, cause, why, event_id, said_at, note, acknowledged_by
FROM changes
"""


def find_trends(data: Path, pattern: str | None = None, *, with_weak: bool = False) -> Trends:
    """The changes of every series whose name and metric match a pattern: those reported, and those since.

    Raises UsageError if the pattern is not a regular expression, or no series matches.
    """
    said, outliers = read_said(data)
    known = known_of(said, outliers)
    new, measured, counts, keys = list[Change](), Counter[tuple[str, date]](), [0, 0], set[SeriesKey]()
    for series in _matching(chain(own_series(data), history_series(data)), pattern):
        counts[0] += 1
        counts[1] += len(series.valid) < SHORT
        measured.update(measured_of(series))
        keys.add(series.key)
        new += changes_of(series, said=known.get(series.key, Known()).changes)
    if not counts[0]:
        what = "no series in the warehouse" if pattern is None else f"no series matches {pattern!r}"
        raise UsageError(f"{what}: run a night, or import results with `nightbench import --history FILE`")
    unsaid = [SaidChange.of(one) for one in with_events(new, measured, [change.member for change in said])]
    rows = [*_said_rows(data, keys), *(one.model_dump() | _UNSAID for one in unsaid)]
    return Trends(tuple(_listed(rows, with_weak=with_weak)), *counts)


_UNSAID: dict[str, Any] = {"said_at": None, "note": None, "acknowledged_by": None}


def _said_rows(data: Path, keys: AbstractSet[SeriesKey]) -> Iterator[dict[str, Any]]:
    for row in ask(data, _SAID).dicts():
        if SeriesKey(row["source"], row["series"], row["metric"], row["unit"]) in keys:
            yield row


def _listed(rows: Sequence[dict[str, Any]], *, with_weak: bool) -> Iterator[dict[str, Any]]:
    """The rows in the order of time, as they are printed; `event_series` counts the series of each event."""
    sizes = Counter(
        event for event, *_ in {(row["event_id"], row["series"], row["metric"], row["unit"]) for row in rows}
    )
    for row in sorted(rows, key=lambda row: (row["first_bad_at"], row["event_id"], row["series"], row["metric"])):
        if with_weak or row["state"] != "weak":
            said_at = None if row["said_at"] is None else row["said_at"].isoformat()
            yield {name: row[name] for name in FIELDS if name in row} | {
                "event_series": sizes[row["event_id"]],
                "said_at": said_at,
                "note": row["note"],
                "acknowledged_by": row["acknowledged_by"],
            }


# Each change as an object, the promised fields first.
FIELDS = (
    *("series", "metric", "last_good", "first_bad", "effect_pct", "ci_lo", "ci_hi", "state", "cause", "event_id"),
    *("kind", "direction", "until", "why", "source", "unit"),
)


def _matching(series: Iterable[Series], pattern: str | None) -> Iterator[Series]:
    try:
        wanted = re.compile(pattern or "", re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from error
    return (one for one in series if wanted.search(f"{one.key.source} {one.key.series} {one.key.metric}"))
