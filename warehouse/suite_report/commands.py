"""The rows of a report about commands: each metric with its unit and interval, and the published figure beside it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from warehouse.lake.query import ask
from warehouse.suite_report.measured import Measured, NightValues
from warehouse.suite_report.published import beside, differing_terms_of_command, figure_of_columns

METRICS = "SELECT run_id, metric, unit, value, samples FROM command_metrics WHERE night = ?"


def command_rows(
    data: Path, suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each metric of each command; a command without good runs has one row with the reason."""
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in ask(data, METRICS, (values.night,)).dicts():
        by_run[row["run_id"]].append(row)
    for scenario in scenarios:
        measured = values.of(scenario.name)
        found = [row for run in measured.rows for row in by_run[run["run_id"]]]
        for place, metric in enumerate(dict.fromkeys(row["metric"] for row in found) or (None,)):
            row = _row(scenario, metric, [row for row in found if row["metric"] == metric], measured)
            columns = None if place else table.figures.get(scenario.name)  # of the first metric
            yield row | _figure(suite, table, columns, row, measured) | {"reason": measured.reason}


def _row(scenario: Scenario, metric: str | None, found: Sequence[dict[str, Any]], measured: Measured) -> dict[str, Any]:
    by_run = {row["run_id"]: row["value"] for row in found}
    rows = tuple({**run, "value": by_run.get(run["run_id"])} for run in measured.rows)
    value = replace(measured, rows=rows).value("value")
    return {
        "scenario": scenario.name,
        "metric": metric,
        "unit": found[0]["unit"] if found else None,
        "verdict": measured.verdict,
        "runs": len(measured.rows),
        "values_per_run": found[0]["samples"] if found else None,
        "value": value.mean,
        "value_low": value.low,
        "value_high": value.high,
    }


def _figure(
    suite: Suite, table: ReportTable, columns: dict[str, str] | None, row: dict[str, Any], measured: Measured
) -> dict[str, Any]:
    """The published figure with these columns, if the table has any figures."""
    if table.published is None:
        return {}
    if columns is None:
        return beside(None, None, (), measured, table.published_scale)
    figure = figure_of_columns(columns, suite.report.sources, table.published)
    different = differing_terms_of_command(figure, measured, str(row["unit"])) if row["value"] is not None else ()
    return beside(figure, row["value"], tuple(different), measured, table.published_scale)
