"""Tables with a row for each scenario, and pivots of them."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.errors import UsageError
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from warehouse.suite_report.measured import Measured, NightValues
from warehouse.suite_report.printed import printed_figure
from warehouse.suite_report.published import beside, differing_terms, find_figure, named_figure, unstated_terms
from warehouse.suite_report.shown_terms import stated_of, terms_of

NOT_ASKED = "not requested"


def scenario_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row a scenario: its load, each metric with its interval, and the published figure beside the first."""
    for scenario in scenarios:
        measured = values.of(scenario.name)
        row: dict[str, Any] = {
            "scenario": scenario.name,
            "model": scenario.model.name,
            "load": values.load_of(scenario),
            **terms_of(table.show, scenario, measured),
            **stated_of(table, scenario.name),
            "verdict": measured.verdict,
            "runs": len(measured.rows),
        }
        for place, metric in enumerate(table.metrics):
            row |= interval(metric, measured)
            if place == 0:
                row |= beside_scenario(suite, table, scenario, measured)
        yield row | {"reason": measured.reason}


def interval(metric: str, measured: Measured) -> dict[str, float | None]:
    """A metric with the ends of its interval, as columns."""
    return dict(zip((metric, f"{metric}_low", f"{metric}_high"), measured.value(metric).ends, strict=True))


def beside_scenario(suite: Suite, table: ReportTable, scenario: Scenario, measured: Measured) -> dict[str, Any]:
    """The published figure of a scenario, if the table has figures."""
    if table.published is None and not table.printed:
        return {}
    sources, ours = suite.report.sources, measured.value(table.metrics[0])
    figure, different = named_figure(table, scenario.name, sources)
    if figure is None and not different:
        in_flight = scenario.workload.in_flight
        figure, different = printed_figure(suite.report, table, scenario.name, scenario.model.name, in_flight)
    if figure is None and not different and table.published is not None:
        figure = find_figure(scenario, sources, table.published)
    unstated: tuple[str, ...] = ()
    if figure is not None and ours.mean is not None:
        different += tuple(differing_terms(figure, scenario, measured))
        unstated = unstated_terms(figure, scenario, measured)
    return beside(figure, ours, different, measured, table.published_scale, unstated)


def pivot_rows(
    _suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """The first metric by two keys of the workload; N/A has no good run."""
    metric, down, across = table.metrics[0], str(table.rows), str(table.columns)
    columns = sorted({_key(one, across) for one in scenarios}, key=_order)
    for key in sorted({_key(one, down) for one in scenarios}, key=_order):
        row: dict[str, Any] = {down: key}
        for column in columns:
            here = [one for one in scenarios if (_key(one, down), _key(one, across)) == (key, column)]
            means = [values.of(one.name).value(metric).mean for one in here]
            row[f"{across}={column}"] = NOT_ASKED if not here else ("N/A" if means[0] is None else means[0])
        yield row


def _key(scenario: Scenario, name: str) -> Any:
    if name == "model":
        return scenario.model.name
    if name == "load":
        return scenario.workload.in_flight
    if not hasattr(scenario.workload, name):
        raise UsageError(f"report: {name!r} is not a key of a scenario: use isl, osl, concurrency, load or model")
    return getattr(scenario.workload, name)


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value
