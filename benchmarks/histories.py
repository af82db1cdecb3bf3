"""Real histories of other people: which known events are found, with their date and their cause, and what else is said.

`python -m benchmarks histories` reads the folder that HISTORIES names, else shared/data/history in or beside the
checkout: gzipped CSV files, and events.csv with what is known of their steps. They are no part of the project.
"""

import csv
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError
from warehouse.histories import import_history
from warehouse.importers.history.long_table import HistoryOptions
from warehouse.lake.query import run_sql
from warehouse.trends.find import find_trends

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "shared" / "data" / "history", ROOT.parent / "shared" / "data" / "history")
FOUND = Bar("histories.found", "certain events found within one valid night", "%", 1.0, "at least", is_portable=True)
EXPLAINED = Bar("histories.explained", "of these, with their class of cause", "%", 1.0, "at least", is_portable=True)
OTHER = Bar("histories.other", "alerts of no known event a series-year", "", 2.0, is_portable=True)
SECOND = Bar("histories.other_second_half", "the same, of the second half of the series", "", 2.0, is_portable=True)
NO_STEP = "no step"
# The file of a source, as events.csv names it, and the classes of cause that a kind of event may have.
FILES = {"atom_perf": "ATOM", "intel_ur_llamacpp": "unified-runtime"}
CLASSES = {"driver_change": {"driver"}, "spike": {"spike"}, "host_change": {"host"}, "client_change": {"client"}}
ENGINE = {"engine", "image", "unknown"}


@dataclass(frozen=True)
class Known:
    """One known event."""

    source: str
    series: str
    metric: str
    dates: tuple[date, date]
    kind: str
    has_step: bool
    is_certain: bool

    def holds(self, row: Mapping[str, Any], places: Mapping[date, int], nights: int = 1) -> bool:
        """Whether a change is of this event, by its names and its date."""
        first, last = (self._place(places, day) for day in self.dates)
        at = places[date.fromisoformat(row["first_bad"][:10])]
        is_named = self.source in row["source"] and re.search(self.series, row["series"])
        return bool(is_named and re.search(self.metric, row["metric"]) and first - nights < at <= last + nights)

    @staticmethod
    def _place(places: Mapping[date, int], day: date) -> int:
        return max((place for night, place in places.items() if night <= day), default=0)


def read_events(file: Path) -> list[Known]:
    """What is known of the histories beside it."""
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Known(
                source=FILES.get(row["source_file"], row["source_file"]),
                series=row["series_regex"],
                metric=row["metric_regex"],
                dates=(_day(row["last_before"]), _day(row["first_after"])),
                kind=row["kind"],
                has_step=not row["effect"].startswith(NO_STEP),
                is_certain=row["certainty"] == "certain",
            )
            for row in csv.DictReader(lines)
        ]


def _day(text: str) -> date:
    return date.fromisoformat(text[:10])


def measure() -> Mapping[str, Measured]:
    """Import the histories, find their changes and hold them against what is known."""
    folder = folder_of_histories()
    events = read_events(folder / "events.csv")
    with TemporaryDirectory() as data:
        for file in sorted(folder.glob("*.csv.gz")):
            import_history(Path(data), file, HistoryOptions())
        rows = find_trends(Path(data)).rows()
        places = places_of(Path(data))
        years = _years(Path(data))
    found, explained = [], []
    for event in (event for event in events if event.is_certain):
        of_it = [row for row in rows if event.holds(row, places[row["source"]])]
        if event.has_step:
            found.append(bool(of_it))
            explained.append(_has_cause(event, of_it))
        else:
            found.append(not _blamed(event, of_it))
        result = "found" if found[-1] else "MISSED"
        print(f"{event.kind} {event.series} {event.dates[1]}: {len(of_it)} changes, {result}")
    others = [row for row in rows if not any(event.holds(row, places[row["source"]], 3) for event in events)]
    lone = sum(row["event_series"] == 1 for row in others)
    halves = [sum(_half(row["series"]) == half for row in others) / years[half] for half in (0, 1)]
    groups = len({row["event_id"] for row in others})
    print(f"{len(rows)} alerts, {len(others)} of no known event ({lone} of one series alone) in {groups} events")
    print(f"{sum(years):.1f} series-years; a series-year of each half of the series: {halves[0]:.2f}, {halves[1]:.2f}")
    return {
        FOUND.name: Measured(_share(found)),
        EXPLAINED.name: Measured(_share(explained)),
        OTHER.name: Measured(len(others) / sum(years)),
        SECOND.name: Measured(halves[1]),
    }


YEARS = """
SELECT series, years FROM (
    SELECT series, epoch(max(measured_at) - min(measured_at)) / 86400 / 365.0 AS years, count(*) AS nights
    FROM history_points WHERE value IS NOT NULL GROUP BY source, series, metric, unit
) WHERE nights >= 10
"""


def _half(series: str) -> int:
    """The half of a series, by its name."""
    return zlib.crc32(series.encode()) % 2


def _years(data: Path) -> list[float]:
    """The series-years of each half."""
    found = [0.0, 0.0]
    for series, years in run_sql(data, YEARS).rows:
        found[_half(series)] += years
    return found


def _has_cause(event: Known, rows: Iterable[Mapping[str, Any]]) -> bool:
    wanted = CLASSES.get(event.kind, ENGINE)
    causes = [row["cause"] for row in rows]
    return bool(causes) and sum(cause in wanted for cause in causes) * 2 > len(causes)


def _blamed(event: Known, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps that take a change which moved nothing for one of the engine; an odd night is no step."""
    wanted = CLASSES.get(event.kind, ENGINE)
    return [row for row in rows if "llama" in row["series"] and row["kind"] == "step" and row["cause"] not in wanted]


def places_of(data: Path) -> dict[str, dict[date, int]]:
    """The place of each date among the nights of its source."""
    found: dict[str, dict[date, int]] = {}
    for source, day in run_sql(data, "SELECT DISTINCT source, measured_at::DATE FROM history_points ORDER BY ALL").rows:
        nights = found.setdefault(source, {})
        nights[day] = len(nights)
    return found


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def _candidates() -> Iterator[Path]:
    named = os.environ.get("HISTORIES")
    yield from (Path(named),) if named else FOLDERS


def folder_of_histories() -> Path:
    """The folder of the histories; raises NotMeasuredError where there is none."""
    for folder in _candidates():
        if (folder / "events.csv").is_file():
            return folder
    raise NotMeasuredError(f"no events.csv in {' or '.join(map(str, _candidates()))}: set HISTORIES to the folder")


BENCHMARK = Benchmark("histories", (FOUND, EXPLAINED, OTHER, SECOND), measure, is_slow=False)
