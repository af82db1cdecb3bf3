"""Prints the many scenarios of a plan: a line for a hundred of them, and what was merged."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from flows.show.console import line

if TYPE_CHECKING:
    from bench.record import NightRecord, PlannedRun

T = TypeVar("T")
FEW = 20  # scenarios that are shown one by one without --full
IN_A_LINE = 100


def is_long(night: "NightRecord") -> bool:
    """Whether a plan has so many scenarios that it is shown in short."""
    return len(_scenarios(night)) > FEW


def point_rows(night: "NightRecord") -> list[dict[str, Any]]:
    """A row for each hundred scenarios, in the order of the suite."""
    return [
        {
            "scenarios": len(names),
            "first": names[0],
            "last": names[-1],
            **_totals([run for run in night.runs if run.scenario.name in names]),
        }
        for names in _hundreds(_scenarios(night))
    ]


def _totals(runs: "Sequence[PlannedRun]") -> dict[str, Any]:
    loads = [run.scenario.workload for run in runs]
    return {
        "isl": _range([load.isl for load in loads]),
        "osl": _range([load.osl for load in loads]),
        "concurrency": _range([load.concurrency for load in loads if load.concurrency is not None]),
        "servers": len({run.scenario.server_id for run in runs}),
        "runs": len(runs),
        "requests": sum(load.request_count for load in loads),
    }


def _range(values: list[int]) -> str:
    if not values:
        return ""
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _scenarios(night: "NightRecord") -> list[str]:
    planned = {run.scenario.name for run in night.runs}
    return [entry.name for entry in night.suite.scenarios if entry.name in planned]


def in_short(stages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of stages with one row for each hundred scenarios."""
    for scenario, rows in groupby(stages, key=lambda row: row["scenario"] is not None):
        if not scenario:
            yield from rows
            continue
        for some in _hundreds(list(rows)):
            added = {name: _sum([row[name] for row in some]) for name in ("times", "minutes", "billed_minutes", "usd")}
            label = f"{len(some)} scenarios from {some[0]['scenario']}"
            bases = {row["basis"] for row in some}
            yield (
                some[0] | added | {"scenario": label, "basis": bases.pop() if len(bases) == 1 else "--full lists each"}
            )


def _hundreds(values: list[T]) -> list[list[T]]:
    return [values[start : start + IN_A_LINE] for start in range(0, len(values), IN_A_LINE)]


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 3) if len(known) == len(values) else None


def show_merged(night: "NightRecord", *, full: bool) -> None:
    """Say which scenarios of the suite are measured once because they are equal."""
    merged = list(night.suite.merged.items())
    for name, kept in merged if full else merged[:1]:
        line(f"merged: {name} is equal to {kept}, which is measured once for both")
    if len(merged) > 1 and not full:
        line(f"merged: {len(merged) - 1} more scenarios are equal to another; --full lists them")


def search_rows(night: "NightRecord") -> list[dict[str, Any]]:
    """A row for each search: how many probes each of its repeats has at most."""
    repeats = Counter(run.scenario.name for run in night.runs)
    return [
        {
            "search": entry.name,
            "kind": entry.search.kind,
            "repeats": repeats[entry.name],
            "probes_max": entry.search.probes_max,
        }
        for entry in night.suite.scenarios
        if entry.search is not None and entry.name in repeats
    ]


def show_searches(night: "NightRecord") -> None:
    """Say how many runs may follow those that are listed, which have the first probe of each search."""
    rows = search_rows(night)
    if rows:
        name = f"search {rows[0]['search']}" if len(rows) == 1 else f"{len(rows)} searches"
        more = sum(row["repeats"] * (row["probes_max"] - 1) for row in rows)
        line(f"{name}: the first probe is listed, at most {more} more runs follow from what the probes show")
