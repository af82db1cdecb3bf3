"""The rows of a report about commands: each metric with its unit and interval, and the published figure beside it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from warehouse.lake.query import ask
from warehouse.suite_report.measured import Measured, NightValues, Value
from warehouse.suite_report.published import beside, differing_terms_of_command, named_figure
from warehouse.suite_report.shown_terms import stated_of

METRICS = "SELECT run_id, metric, unit, value, samples FROM command_metrics WHERE night = ?"


def command_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each metric of each command; a command without good runs has one row with the reason."""
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in ask(values.data, METRICS, (values.night,)).dicts():
        by_run[row["run_id"]].append(row)
    for scenario in (one for one in scenarios if one.workload.command):
        measured = values.of(scenario.name)
        found = [row for run in measured.rows for row in by_run[run["run_id"]]]
        for place, metric in enumerate(dict.fromkeys(row["metric"] for row in found) or (None,)):
            row = _row(scenario, metric, [row for row in found if row["metric"] == metric], measured)
            is_first = place == 0  # the figure is of the first metric
            yield (
                row
                | stated_of(table, scenario.name)
                | _figure(suite, table, row, measured, is_first=is_first)
                | {"reason": measured.reason}
            )


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
    suite: Suite, table: ReportTable, row: dict[str, Any], measured: Measured, *, is_first: bool
) -> dict[str, Any]:
    """The published figure of a row, if the table has any figures."""
    if table.published is None:
        return {}
    figure, different = named_figure(table, row["scenario"], suite.report.sources) if is_first else (None, ())
    ours = Value(row["value"], row["value_low"], row["value_high"])
    if figure is not None and ours.mean is not None:
        different += tuple(differing_terms_of_command(figure, measured, str(row["unit"])))
    return beside(figure, ours, different, measured, table.published_scale)
