"""Build the tables of a suite's report from one of its nights."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.cost.memory import fits_of
from bench.engines.by_name import ENGINES
from bench.errors import UsageError
from bench.plan import describe_load, plan_runs
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.read import machine_size, read_catalog
from warehouse.lake.query import run_sql
from warehouse.rows.records import read_night
from warehouse.sql import sql
from warehouse.suite_report.ceilings import memory_fit_rows, roofline_rows
from warehouse.suite_report.commands import command_rows
from warehouse.suite_report.measured import Measured, NightValues, newest_night, read_values, require_metrics
from warehouse.suite_report.published import beside, differing_terms, figure_of_columns, find_figure
from warehouse.suite_report.table import SuiteReport, Table

HOURS = {"hour": 1, "day": 24, "month": 730}  # a month of 365 * 24 / 12 hours
VIEWS = ("machine_pairs", "machine_prices", "searches")  # the kinds whose rows are those of a view
PRICED, PRICE = ("cost", "machine_prices"), re.compile("usd|cost|price")  # kinds of tables, and names of metrics
MINIATURE = (
    "This is a miniature of the published work: its scenarios with the model and sizes of the suite's [local] table, "
    "run on this computer to show that each part works. Its numbers say nothing of the suite's own machine, so that no "
    "published number is compared and no price is shown"
)
NOT_ASKED = "not requested"
_FIGURES = """
SELECT metric, gpu, gpu_count, value, unit, verdict AS published_verdict, source, notes
FROM published WHERE list_contains(?, source) AND list_contains(?, metric) ORDER BY list_position(?, metric), line
"""
TOKENS_PER_MTOK, S_PER_HOUR = 1e6, 3600


def build_report(data: Path, suite: Suite, night: str | None = None) -> SuiteReport:
    """The report of a suite over this night, or its newest one; UsageError where there is none."""
    for table in suite.report.tables:
        if table.kind != "published":
            require_metrics(table.metrics)
    night = night or newest_night(data, suite.name)
    try:
        planned = read_night((data / "runs" / night / "night.json").read_bytes())
    except OSError as error:
        raise UsageError(f"the night {night!r} has no plan in {data / 'runs'}: {error.strerror}") from error
    if planned.suite.name.removesuffix("-local") != suite.name:
        raise UsageError(f"the night {night!r} is of the suite {planned.suite.name!r}, not of {suite.name!r}")
    measured_as = {name: planned.suite.merged.get(first, first) for name, first in suite.merged.items()}
    values = read_values(data, night, planned.suite.merged | measured_as)
    title, tables, notes = suite.report.title or suite.name, suite.report.tables, tuple(_other_requests(suite))
    if planned.suite.name != suite.name:
        title, tables, notes = f"{title}: a miniature on this computer", _without_prices(tables), (MINIATURE, *notes)
        values = replace(values, loads={one.name: describe_load(one) for one in planned.suite.expand()})
    return SuiteReport(
        suite=suite.name,
        title=title,
        night=night,
        target=planned.target,
        tables=tuple(_table(data, suite, table, values) for table in tables),
        notes=notes,
    )


def _without_prices(tables: Sequence[ReportTable]) -> tuple[ReportTable, ...]:
    """The tables of a miniature: a price of the suite's machine says nothing of what this computer does."""
    rest = [table for table in tables if table.kind not in PRICED]
    free = [[metric for metric in table.metrics if not PRICE.search(metric)] for table in rest]
    return tuple(
        table.model_copy(update={"metrics": tuple(metrics)})
        for table, metrics in zip(rest, free, strict=True)
        if metrics or not table.metrics
    )


def _other_requests(suite: Suite) -> Iterator[str]:
    """The keys in which the requests of the sources differ from ours, such as the sampling temperature."""
    ours = {**ENGINES[suite.engine.name].REQUEST_BODY, "stream": True}
    terms = [
        f"{key}: {theirs} published, {ours.get(key, 'not set')} here"
        for key, theirs in suite.report.requests.items()
        if ours.get(key) != theirs
    ]
    if terms:
        yield f"The requests of the sources differ from ours: {'; '.join(terms)}"


def _table(data: Path, suite: Suite, table: ReportTable, values: NightValues) -> Table:
    if table.kind in VIEWS:
        query = sql("SELECT * EXCLUDE (night) FROM {{ view | name }} WHERE night = ? ORDER BY ALL", view=table.kind)
        return Table(table.title, tuple(run_sql(data, query, (values.night,)).dicts()))
    if table.kind == "published":
        return Table(table.title, tuple(_published(data, suite, table)))
    if table.kind == "commands":
        commands = [one for one in _asked(suite) if one.workload.command and one.name.startswith(table.only)]
        return Table(table.title, tuple(command_rows(data, suite, table, commands, values)))
    scenarios = [one for one in _asked(suite) if one.name.startswith(table.only)]
    builders: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
        "scenarios": _scenarios,
        "pivot": _pivot,
        "cost": _cost,
        "memory": _memory,
        "roofline": roofline_rows,
        "memory_fit": memory_fit_rows,
    }
    return Table(table.title, tuple(builders[table.kind](suite, table, scenarios, values)))


def _published(data: Path, suite: Suite, table: ReportTable) -> Sequence[dict[str, Any]]:
    """What the sources print of these metrics, also of other GPUs, with the verdict on each figure."""
    metrics = list(table.metrics)
    return run_sql(data, _FIGURES, (list(suite.report.sources), metrics, metrics)).dicts()


def _asked(suite: Suite) -> Iterator[Scenario]:
    """Every scenario of a suite, with those that are equal to another and are measured with it."""
    by_name = {one.name: one for one in suite.expand()}
    yield from by_name.values()
    for name, first in suite.merged.items():
        yield by_name[first].model_copy(update={"name": name})


def _scenarios(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row a scenario: its load, each metric with its interval, and the published figure beside the first."""
    for scenario in scenarios:
        measured = values.of(scenario.name)
        row: dict[str, Any] = {
            "scenario": scenario.name,
            "model": scenario.model.name,
            "load": values.load_of(scenario),
            "verdict": measured.verdict,
            "runs": len(measured.rows),
        }
        for place, metric in enumerate(table.metrics):
            value = measured.value(metric)
            row |= {metric: value.mean, f"{metric}_low": value.low, f"{metric}_high": value.high}
            if place == 0:
                row |= _beside(suite, table, scenario, measured)
        yield row | {"reason": measured.reason}


def _beside(suite: Suite, table: ReportTable, scenario: Scenario, measured: Measured) -> dict[str, Any]:
    """The published figure of a scenario, if the table has one."""
    if table.published is None:
        return {}
    columns, sources = table.figures.get(scenario.name), suite.report.sources
    figure = (
        figure_of_columns(columns, sources, table.published)
        if columns
        else find_figure(scenario, sources, table.published)
    )
    ours = measured.value(table.metrics[0]).mean
    different = differing_terms(figure, scenario, measured) if figure is not None and ours is not None else ()
    return beside(figure, ours, tuple(different), measured, table.published_scale)


def _pivot(
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


def _cost(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each price and scenario: the machine's, the night's own then the listed one, and a million tokens'.

    Each kind of token alone carries the whole price, so the three are not added.
    """
    del table
    size = machine_size(None, suite.machine.kind)
    listed = None if size is None else size.usd_per_hour
    paid = next((one.fact("usd_per_hour") for one in values.scenarios.values() if one.fact("usd_per_hour")), None)
    for name, usd in (("at the night's own price", paid), ("at the listed price", listed)):
        price = {f"usd_per_{unit}": None if usd is None else usd * hours for unit, hours in HOURS.items()}
        for scenario in scenarios:
            rates = _token_rates(values.of(scenario.name))
            tokens = {
                f"usd_per_mtok_{kind}": usd / S_PER_HOUR / rate * TOKENS_PER_MTOK if usd and rate else None
                for kind, rate in rates.items()
            }
            yield {"price": name, **price, "scenario": scenario.name, **tokens}


def _token_rates(measured: Measured) -> dict[str, float | None]:
    """Tokens per second by kind; that of input follows from the share of output in the tokens of the same requests."""
    output = measured.value("output_throughput_tok_per_s").mean
    asked, written = (measured.value(f"total_{kind}_tokens").mean for kind in ("input", "output"))
    if output is None or asked is None or not written:
        return {"input": None, "output": output, "total": None}
    return {"input": output * asked / written, "output": output, "total": output * (1 + asked / written)}


def _memory(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """What the weights and the largest load of each model need, by the catalogue; the KV cache as found."""
    del table
    fits = fits_of(suite, plan_runs(suite, suite.seed), machine_size(None, suite.machine.kind), read_catalog())
    for model in suite.models:
        fit = fits.get(model.name)
        tokens = [values.of(one.name).fact("kv_cache_tokens") for one in scenarios if one.model.name == model.name]
        yield {
            "model": model.name,
            "machine": suite.machine.kind,
            "needed_gib": None if fit is None else fit.needed_gib,
            "room_gib": None if fit is None else fit.room_gib,
            "fits": None if fit is None else fit.fits,
            "kv_cache_tokens_found": next((count for count in tokens if count is not None), None),
        }
