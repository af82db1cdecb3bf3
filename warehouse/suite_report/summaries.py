"""Tables over several scenarios: means, peaks and totals of each model and machine, and levels with a status."""

from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.search import Limits
from bench.suite.suite import Suite
from warehouse.schema.row import Row
from warehouse.suite_report.measured import Measured, NightValues, Value
from warehouse.suite_report.printed import printed_figure
from warehouse.suite_report.published import beside_row
from warehouse.suite_report.scenario_rows import beside_scenario, interval

TOTAL, SUCCESS = "total_throughput_tok_per_s", "success_share"
E2EL_P99 = "e2el_p99_ms"
# What a total counts, by the columns of the measurements that it adds.
TOTALS = {
    "requests": ("completed", "failed"),
    "prompt tokens": ("total_input_tokens",),
    "output tokens": ("total_output_tokens",),
    "tokens": ("total_input_tokens", "total_output_tokens"),
}


def _groups(scenarios: Sequence[Scenario]) -> Iterator[tuple[str, list[Scenario]]]:
    """The scenarios of each model on each machine, named `model` or `model@machine`, in the order of the suite."""
    found: dict[str, list[Scenario]] = {}
    for one in scenarios:
        name = one.model.name if one.machine.name is None else f"{one.model.name}@{one.machine.name}"
        found.setdefault(name, []).append(one)
    yield from found.items()


def mean_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """Mean and standard deviation of each metric over the scenarios of a model and machine, each scenario once.

    The deviation is that of a sample. A row's name for `figures` is `model/mean` or `model/standard deviation`.
    """
    for name, of_it in _groups(scenarios):
        for metric in table.metrics:
            found = [value for one in of_it if (value := values.of(one.name).value(metric).mean) is not None]
            deviation = stdev(found) if len(found) > 1 else None
            middle = mean(found) if found else None
            for what, value in (("mean", middle), ("standard deviation", deviation)):
                row = {"model": name, "metric": metric, "statistic": what, "scenarios": len(found), "value": value}
                share = deviation / middle if deviation is not None and middle else None
                terms = () if len(found) == len(of_it) else (f"{len(found)} of {len(of_it)} scenarios have a value",)
                yield (
                    row
                    | {"share_of_mean": share if what != "mean" else None}
                    | beside_row(
                        table, f"{name}/{what}", suite.report.sources, Value(value), terms + _elsewhere(of_it, values)
                    )
                )


def _elsewhere(scenarios: Sequence[Scenario], values: NightValues) -> tuple[str, ...]:
    """That a night ran another model than the suite's, as a miniature does."""
    ours = {values.of(one.name).fact("model_source") for one in scenarios} - {None}
    asked = {one.model.source.partition("@")[0] for one in scenarios}
    other = sorted(str(one) for one in ours if str(one).partition("@")[0] not in asked)
    return (f"model: {', '.join(other)} here",) if other else ()


def peak_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """The scenario of each model and machine with the highest first metric, its load, and every metric there."""
    for name, of_it in _groups(scenarios):
        best = max(_with_values(of_it, table.metrics[0], values), key=lambda pair: pair[1], default=(None, 0.0))[0]
        measured = Measured("not-run") if best is None else values.of(best.name)
        row: dict[str, Any] = {"model": name, "scenarios": len(of_it)}
        row |= {"scenario": None if best is None else best.name, "load": None if best is None else values.load_of(best)}
        for place, metric in enumerate(table.metrics):
            row |= interval(metric, measured)
            if place == 0:
                terms = () if best is None else _elsewhere([best], values)
                printed, why = printed_figure(suite.report, table, name, of_it[0].model.name, None)
                row |= beside_row(table, name, suite.report.sources, measured.value(metric), terms + why, printed)
        yield row | {"runs": len(measured.rows)}


def _with_values(
    scenarios: Sequence[Scenario], metric: str, values: NightValues
) -> Iterator[tuple[Scenario | None, float]]:
    """The scenarios that have a value of a metric, with it."""
    for one in scenarios:
        value = values.of(one.name).value(metric).mean
        if value is not None:
            yield one, value


def total_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """Requests, tokens and success rate of each model over all runs, and of the whole night; long form, with figures.

    Runs that were rejected count too: their requests were sent. `runs` have a count: one without is left out, and the
    total then not compared. A row's name for `figures` is `all/requests` or so.
    """
    groups = [*_groups(scenarios), ("all", list(scenarios))]
    for name, of_it in groups:
        runs = [row for one in _names(of_it, values) for row in values.scenarios[one].every]
        sums = {what: _sum(runs, columns) for what, columns in TOTALS.items()}
        (completed, _known), (requests, known) = _sum(runs, ("completed",)), sums["requests"]
        found = {"runs": (float(len(runs)), len(runs)), **sums}
        found["success_pct"] = (100 * completed / requests if requests and completed is not None else None, known)
        for what, (value, known) in found.items():
            lacking = () if known == len(runs) else (f"{known} of {len(runs)} runs have a count",)
            row = {"model": name, "count": what, "runs": known, "value": value}
            terms = _elsewhere(of_it, values) + lacking
            yield row | beside_row(table, f"{name}/{what}", suite.report.sources, Value(value), terms)


def _sum(runs: Sequence[Row], columns: Sequence[str]) -> tuple[float | None, int]:
    """The sum of these columns over the runs that have them all, None of none, and how many runs that is."""
    known = [[row[one] for one in columns] for row in runs if all(row.get(one) is not None for one in columns)]
    return (float(sum(map(sum, known))) if known else None), len(known)


def _names(scenarios: Sequence[Scenario], values: NightValues) -> list[str]:
    """The names under which these scenarios were measured, each once."""
    own = dict.fromkeys(values.merged.get(one.name, one.name) for one in scenarios)
    return [name for name in own if name in values.scenarios]


def level_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each model and level of concurrency, with a status; the lowest level of a model is its baseline."""
    for name, of_it in _groups(scenarios):
        by_level = sorted(of_it, key=lambda one: one.workload.in_flight)
        levels = [values.of(one.name) for one in by_level]
        for scenario, level, word in zip(by_level, levels, _statuses(levels), strict=True):
            row: dict[str, Any] = {"model": name, "scenario": scenario.name, "concurrency": scenario.workload.in_flight}
            for place, metric in enumerate(table.metrics):
                row |= interval(metric, level)
                if place == 0:
                    row |= beside_scenario(suite, table, scenario, level)
            yield row | {"status": word, "verdict": level.verdict, "runs": len(level.rows)}


def _statuses(levels: Sequence[Measured]) -> list[str | None]:
    """The words of the study: FAILING, SATURATED, DEGRADED, PEAK and OK; None of a level without a value.

    The limits are those of a sweep (`Limits`): success below 95 %, growth below 5 %, a p99 of twice the baseline's.
    """
    limits, rates = Limits(), [one.value(TOTAL).mean for one in levels]
    peak = max((rate for rate in rates if rate is not None), default=None)
    baseline = levels[0].value(E2EL_P99).mean if levels else None
    found: list[str | None] = []
    before: float | None = None
    for level, rate in zip(levels, rates, strict=True):
        found.append(_status(limits, level, before, baseline, is_peak=rate == peak))
        before = rate if rate is not None else before
    return found


def _status(
    limits: Limits, level: Measured, before: float | None, baseline: float | None, *, is_peak: bool
) -> str | None:
    rate, success = level.value(TOTAL).mean, level.value(SUCCESS).mean
    p99 = level.value(E2EL_P99).mean
    if rate is None:
        return None
    if success is not None and success < limits.success_share_min:
        return "FAILING"
    if before is not None and rate < limits.growth_min * before:
        return "SATURATED"
    if p99 is not None and baseline and p99 > limits.p99_ratio_max * baseline:
        return "DEGRADED"
    return "PEAK" if is_peak else "OK"
