"""The ratio of two machines over all scenarios that both measured: what a post prints as "1.1 times on average"."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import mean, stdev
from typing import Any

from bench.student import t_975
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from warehouse.lake.query import ask
from warehouse.suite_report.measured import NightValues, Value
from warehouse.suite_report.published import beside_row

_PAIRS = """
SELECT metric, machine_a, machine_b, count(*) AS scenarios, list(ln(ratio)) FILTER (ratio IS NOT NULL) AS logs,
       string_agg(DISTINCT refused, '; ') AS refused
FROM machine_pairs WHERE night = ? AND list_contains(?, metric) AND starts_with(scenario, ?)
GROUP BY ALL ORDER BY metric, machine_a, machine_b
"""


def pair_mean_rows(
    suite: Suite, table: ReportTable, _scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each metric and pair of machines: the geometric mean of the ratios, each scenario with equal weight.

    The interval is that of Student's t over the scenarios' logarithms: how far the mean depends on which scenarios were
    chosen. A row's name for `figures` is `metric/first machine over second`.
    """
    names = {str(one.name): place for place, one in enumerate(suite.machines)}
    rows = ask(values.data, _PAIRS, (values.night, list(table.metrics), table.only)).dicts()
    for (metric, *pair), found in groupby(rows, key=lambda row: (row["metric"], row["machine_a"], row["machine_b"])):
        row = next(iter(found))
        is_turned = names.get(pair[0], 0) > names.get(pair[1], 0)  # the view orders by name, a suite as it likes
        logs = [(-1 if is_turned else 1) * one for one in row["logs"] or ()]
        over = " over ".join(reversed(pair) if is_turned else pair)
        ratio = _interval(logs)
        ends = dict(zip(("mean_ratio", "mean_ratio_low", "mean_ratio_high"), ratio.ends, strict=True))
        counts = {"scenarios": row["scenarios"], "compared": len(logs), "refused": row["refused"]}
        terms = (_elsewhere(suite, values),) if _elsewhere(suite, values) else ()
        yield {"metric": metric, "machines": over, **ends, **counts} | beside_row(
            table, f"{metric}/{over}", suite.report.sources, ratio, terms
        )


def _interval(logs: Sequence[float]) -> Value:
    if not logs:
        return Value()
    middle = mean(logs)
    if len(logs) == 1:
        return Value(math.exp(middle), runs=1)
    half = t_975(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Value(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def _elsewhere(suite: Suite, values: NightValues) -> str:
    """That a miniature ran both on this computer; "" of a night on the suite's machines."""
    kinds = {one.fact("machine_kind") for one in values.scenarios.values()} - {None}
    asked = {machine.kind for machine in suite.machines}
    return "" if kinds <= asked else f"machines: {', '.join(sorted(map(str, kinds - asked)))} here"
