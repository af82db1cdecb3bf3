"""Build the tables of a suite's report from one of its nights."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.engines.by_name import ENGINES
from bench.errors import UsageError
from bench.plan import describe_load
from bench.suite.report import ReportTable, TableKind
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.read import machine_size
from warehouse.lake.query import run_sql
from warehouse.rows.records import read_night
from warehouse.sql import sql
from warehouse.suite_report.ceilings import memory_fit_rows, roofline_rows
from warehouse.suite_report.commands import command_rows
from warehouse.suite_report.machine_rows import memory_rows, setup_rows, specification_rows
from warehouse.suite_report.measured import Measured, NightValues, newest_night, read_values, require_metrics
from warehouse.suite_report.night_cost import night_cost_rows
from warehouse.suite_report.pair_means import pair_mean_rows
from warehouse.suite_report.scenario_rows import pivot_rows, scenario_rows
from warehouse.suite_report.shown_terms import require_terms
from warehouse.suite_report.summaries import level_rows, mean_rows, peak_rows, total_rows
from warehouse.suite_report.table import SuiteReport, Table
from warehouse.suite_report.variant_rows import variant_rows

HOURS = {"hour": 1, "day": 24, "month": 730}  # a month of 365 * 24 / 12 hours
VIEWS = ("machine_pairs", "machine_prices", "searches")  # the kinds whose rows are those of a view
PRICED, PRICE = (
    ("cost", "night_cost", "machine_prices"),
    re.compile("usd|cost|price"),
)  # kinds of tables, and names of metrics
MINIATURE = (
    "This is a miniature of the published work: its scenarios with the model and sizes of the suite's [local] table, "
    "run on this computer to show that each part works. Its numbers say nothing of the suite's own machine, so that no "
    "published number is compared and no price is shown"
)
_FIGURES = """
SELECT metric, gpu, gpu_count, value, unit, verdict AS published_verdict, source, notes
FROM published WHERE list_contains(?, source) AND list_contains(?, metric) ORDER BY list_position(?, metric), line
"""
TEMPERATURE = "temperature"  # a key of requests and of a workload
TOKENS_PER_MTOK, S_PER_HOUR = 1e6, 3600


def build_report(data: Path, suite: Suite, night: str | None = None) -> SuiteReport:
    """The report of a suite over this night, or its newest one; UsageError where there is none."""
    for table in suite.report.tables:
        require_terms(table.show)
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
        values = replace(
            values, is_miniature=True, loads={one.name: describe_load(one) for one in planned.suite.expand()}
        )
    return SuiteReport(
        suite=suite.name,
        title=title,
        night=night,
        target=planned.target,
        tables=tuple(build_table(suite, table, values) for table in tables),
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
    """In which keys the requests of the sources are like ours or differ, and whether they state how they sample."""
    served = [one.temperature for one in suite.scenarios if not one.is_offline and one.command is None]
    ours = {**ENGINES[suite.engine.name].REQUEST_BODY, "stream": True} | ({TEMPERATURE: served[0]} if served else {})
    stated = suite.report.requests
    equal = [f"{key} {theirs}" for key, theirs in stated.items() if ours.get(key) == theirs]
    if equal:
        yield f"The requests are like those of the sources in: {', '.join(equal)}"
    terms = [
        f"{key}: {theirs} published, {ours.get(key, 'not set')} here"
        for key, theirs in stated.items()
        if ours.get(key) != theirs
    ]
    if terms:
        yield f"The requests of the sources differ from ours: {'; '.join(terms)}"
    if TEMPERATURE in stated or not suite.report.sources:
        return
    if served:
        yield f"The sources state no sampling temperature; it is {served[0]:g} here"
    elif any(one.is_offline for one in suite.scenarios):
        yield "The sources state no sampling temperature; here it is that of the engine's offline program"


def build_table(suite: Suite, table: ReportTable, values: NightValues) -> Table:
    """One table of a suite's report."""
    if table.kind in VIEWS:
        query = sql("SELECT * EXCLUDE (night) FROM {{ view | name }} WHERE night = ? ORDER BY ALL", view=table.kind)
        return Table(table.title, tuple(run_sql(values.data, query, (values.night,)).dicts()), table.note)
    scenarios = [one for one in asked_scenarios(suite) if _belongs(one, table)]
    return Table(table.title, tuple(BUILDERS[table.kind](suite, table, scenarios, values)), table.note)


def _belongs(scenario: Scenario, table: ReportTable) -> bool:
    """Whether a scenario is of a table, by its name and its machine."""
    is_named = scenario.name.startswith(table.only) and scenario.name not in table.without
    return is_named and table.machine in {None, scenario.machine.name}


def _published(
    suite: Suite, table: ReportTable, _scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """What the sources print of these metrics, also of other GPUs, with the verdict on each figure."""
    metrics = list(table.metrics)
    yield from run_sql(values.data, _FIGURES, (list(suite.report.sources), metrics, metrics)).dicts()


def asked_scenarios(suite: Suite) -> Iterator[Scenario]:
    """Every scenario of a suite, with those that are equal to another and are measured with it."""
    by_name = {one.name: one for one in suite.expand()}
    yield from by_name.values()
    for name, first in suite.merged.items():
        yield by_name[first].model_copy(update={"name": name})


def _cost(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each price and scenario: the machine's, the night's own then the listed one, and a million tokens'.

    Each kind of token alone carries the whole price, so the three are not added.
    """
    del table
    paid = partial(_paid, suite.expand(), values)
    for name, price_of in (("at the night's own price", paid), ("at the listed price", _listed)):
        for scenario in scenarios:
            usd, rates = price_of(scenario), _token_rates(values.of(scenario.name))
            price = {f"usd_per_{unit}": None if usd is None else usd * hours for unit, hours in HOURS.items()}
            tokens = {
                f"usd_per_mtok_{kind}": usd / S_PER_HOUR / rate * TOKENS_PER_MTOK if usd and rate else None
                for kind, rate in rates.items()
            }
            yield {"price": name, **price, "scenario": scenario.name, **tokens}


def _paid(every: Sequence[Scenario], values: NightValues, scenario: Scenario) -> float | None:
    """What the night paid an hour for the machine of a scenario; None where it measured nothing on it."""
    same = (values.of(one.name) for one in every if one.machine == scenario.machine)
    return next((one.fact("usd_per_hour") for one in same if one.fact("usd_per_hour")), None)


def _listed(scenario: Scenario) -> float | None:
    size = machine_size(None, scenario.machine.kind)
    return None if size is None else size.usd_per_hour


def _token_rates(measured: Measured) -> dict[str, float | None]:
    """Tokens per second by kind; that of input follows from the share of output in the tokens of the same requests."""
    output = measured.value("output_throughput_tok_per_s").mean
    asked, written = (measured.value(f"total_{kind}_tokens").mean for kind in ("input", "output"))
    if output is None or asked is None or not written:
        return {"input": None, "output": output, "total": None}
    return {"input": output * asked / written, "output": output, "total": output * (1 + asked / written)}


Builder = Callable[[Suite, ReportTable, Sequence[Scenario], NightValues], Iterable[dict[str, Any]]]
BUILDERS: Mapping[TableKind, Builder] = MappingProxyType(
    {
        "scenarios": scenario_rows,
        "commands": command_rows,
        "pivot": pivot_rows,
        "means": mean_rows,
        "peaks": peak_rows,
        "levels": level_rows,
        "variants": variant_rows,
        "totals": total_rows,
        "setup": setup_rows,
        "specifications": specification_rows,
        "machine_pair_means": pair_mean_rows,
        "cost": _cost,
        "night_cost": night_cost_rows,
        "memory": memory_rows,
        "memory_fit": memory_fit_rows,
        "roofline": roofline_rows,
        "published": _published,
    }
)
