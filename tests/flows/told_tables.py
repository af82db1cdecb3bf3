"""Compare each cell of a suite's report with what the programs in the engine's place were told."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from types import MappingProxyType
from typing import Any

import pytest

from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from tests.emulators.truth_server import VERSION
from tests.flows.told import Bounds, Told

Row = Mapping[str, Any]
Cell = tuple[str, Any, Bounds | None]  # its name, its value, and what it can be; None: a cell that must be empty
COUNTED = ("total_input_tokens", "total_output_tokens", "completed")
RATE = "output_throughput_tok_per_s"


@dataclass(frozen=True)
class Tables:
    """What a report is compared with; `merged` has the scenario that an equal one was measured with."""

    suite: Suite
    told: Told
    merged: Mapping[str, str]

    def of(self, name: str, metric: str) -> Bounds | None:
        """The bounds of a metric of a scenario."""
        return self.told.of(self.merged.get(name, name), metric)

    def scenarios(self, table: ReportTable) -> list[Scenario]:
        """Those of a table, by the names of the suite."""
        by_name = {one.name: one for one in self.suite.expand()}
        equal = {name: by_name[first].model_copy(update={"name": name}) for name, first in self.suite.merged.items()}
        found = (by_name | equal).values()
        named = [one for one in found if one.name.startswith(table.only) and one.name not in table.without]
        return [one for one in named if table.machine in {None, one.machine.name}]


def wrong_cells(tables: Tables, table: ReportTable, rows: Sequence[Row]) -> tuple[int, list[str]]:
    """How many cells of a table were compared, and those that differ, each with what it should be."""
    cells = [cell for row in rows for cell in CELLS[table.kind](tables, table, row)]
    return len(cells), [
        f"{table.title}: {name} is {value}, not {told}" for name, value, told in cells if not _fits(name, value, told)
    ]


def _fits(name: str, value: Any, told: Bounds | None) -> bool:
    if told is None or value is None:
        return value is None and (told is None or name.endswith("_ms"))  # times that are in doubt are left out
    low, high = told
    return bool(low * (1 - 1e-9) - 1e-9 <= value <= high * (1 + 1e-9) + 1e-9)


def _scenario_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    """The metrics of a scenario with their means inside their intervals, and the terms that were told."""
    name = row["scenario"]
    if name is None:  # a peak of scenarios without numbers
        return
    shown = [term for term in table.show if tables.of(name, term) is not None]
    for metric in (*table.metrics, *shown):
        yield f"{name} {metric}", row[metric], tables.of(name, metric)
        if row.get(f"{metric}_low") is not None:
            yield f"{name} {metric}, interval", row[metric], (row[f"{metric}_low"], row[f"{metric}_high"])


def _peak_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    """Also that no scenario of the model is better."""
    yield from _scenario_cells(tables, table, row)
    metric, model = table.metrics[0], row["model"]
    found = [tables.of(one.name, metric) for one in tables.scenarios(table) if one.model.name == model]
    best = max((one[1] for one in found if one is not None), default=None)
    yield f"{model} peak of {metric}", row[metric], None if best is None else (best, best)


def _command_cells(tables: Tables, _table: ReportTable, row: Row) -> Iterator[Cell]:
    yield f"{row['scenario']} {row['metric']}", row["value"], tables.of(row["scenario"], row["metric"])


def _mean_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    found = [tables.of(one.name, row["metric"]) for one in tables.scenarios(table) if one.model.name == row["model"]]
    known = [one for one in found if one is not None]
    yield f"{row['model']} scenarios", row["scenarios"], (len(known), len(known))
    if row["statistic"] == "mean" and known:
        yield f"{row['model']} mean", row["value"], (mean(low for low, _ in known), mean(high for _, high in known))


def _pivot_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    down, across = str(table.rows), str(table.columns)
    for key in (key for key in row if key != down):
        value = int(key.partition("=")[2])
        works = ((one.name, one.workload) for one in tables.scenarios(table))
        here = [name for name, work in works if (getattr(work, down), getattr(work, across)) == (row[down], value)]
        told = tables.of(here[0], table.metrics[0]) if here else None
        yield f"{row[down]} {key}", None if row[key] in {"N/A", "not requested"} else row[key], told


def _variant_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    """Both variants and, of rates, whose bounds are one number, the ratio of their geometric means."""
    entries = [one for one in tables.suite.scenarios if one.variant is not None and one.base_name == row["scenario"]]
    logs = []
    for place, entry in enumerate(entries, 1):
        name = tables.merged.get(entry.name, entry.name)
        yield f"{name} value", row[f"value_{place}"], tables.of(name, table.metrics[0])
        runs = tables.told.runs[name]
        yield f"{name} repeats", row[f"repeats_{place}"], (len(runs), len(runs))
        logs.append([math.log(tables.told.bounds[run][table.metrics[0]][0]) for run in runs])
    if entries and all(logs):
        ratio = math.exp(mean(logs[1]) - mean(logs[0]))
        yield f"{row['scenario']} ratio", row["ratio"], (ratio, ratio)


def _total_cells(tables: Tables, table: ReportTable, row: Row) -> Iterator[Cell]:
    """Of all runs, also those whose numbers are not shown."""
    of_it = [one.name for one in tables.scenarios(table) if row["model"] in {"all", one.model.name}]
    runs = [
        run
        for name in dict.fromkeys(tables.merged.get(name, name) for name in of_it)
        for run in tables.told.every[name]
    ]
    into, out, requests = (sum(tables.told.bounds[run][name][0] for run in runs) for name in COUNTED)
    sums = {"runs": len(runs), "requests": requests, "prompt tokens": into, "output tokens": out, "tokens": into + out}
    value = {**sums, "success_pct": 100}[row["count"]]
    yield f"{row['model']} {row['count']}", row["value"], (value, value)


def _setup_cells(tables: Tables, _table: ReportTable, row: Row) -> Iterator[Cell]:
    """That the version which the server told is the one found, on each machine that has one."""
    served = [one.machine.name or "found" for one in tables.suite.expand() if one.workload.command is None]
    if row["item"] == "engine":
        for name in dict.fromkeys(served):
            yield f"engine of {name}", float(row[name] is None or VERSION in row[name]), (1, 1)


def _roofline_cells(tables: Tables, _table: ReportTable, row: Row) -> Iterator[Cell]:
    """That what stands beside a ceiling is the rate of one of the model's scenarios."""
    rates = [tables.of(one.name, RATE) for one in tables.suite.expand()]
    for metric in ("measured_single_stream_tok_per_s", "measured_best_tok_per_s"):
        near = [one for one in rates if one is not None and row[metric] == pytest.approx(one[0])]
        yield f"{row['model']} {metric}", row[metric], near[0] if near else None


def no_cells(_tables: Tables, _table: ReportTable, _row: Row) -> Iterator[Cell]:
    """A table of the catalogue, of sources or of prices has nothing that an engine told."""
    yield from ()


CELLS: Mapping[str, Callable[[Tables, ReportTable, Row], Iterator[Cell]]] = MappingProxyType(
    {
        **dict.fromkeys(("scenarios", "levels"), _scenario_cells),
        "peaks": _peak_cells,
        "commands": _command_cells,
        "means": _mean_cells,
        "pivot": _pivot_cells,
        "variants": _variant_cells,
        "totals": _total_cells,
        "setup": _setup_cells,
        "roofline": _roofline_cells,
        **dict.fromkeys(("specifications", "memory", "memory_fit", "published", "searches"), no_cells),
        **dict.fromkeys(("machine_pairs", "machine_pair_means"), no_cells),  # only of runs at prices
    }
)
