"""Tables of two variants of an engine: the second over the first, with what the repeats say of value and spread."""

import math
from collections.abc import Iterator, Sequence
from statistics import mean, stdev, variance
from typing import Any

from bench.fisher import f_975
from bench.student import t_975
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from warehouse.suite_report.measured import NightValues
from warehouse.suite_report.shown_terms import stated_of

PAIR = 2  # variants
ALL = "all scenarios: lowest and highest"


def variant_rows(
    suite: Suite, table: ReportTable, scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each scenario of two variants: both values, the ratio, and the ratio of the spreads over repeats.

    The ratio of the means has the 95 % interval of Welch's t on logarithms. The spread is the standard deviation as a
    share of the mean; its ratio has the 95 % interval of the F distribution, which is wide for few repeats. The last
    row has the lowest and the highest ratio of all scenarios; its name for `stated` is `all`.
    """
    pairs: dict[str, list[str]] = {}
    names = {one.name for one in scenarios}
    for entry in suite.scenarios:
        if entry.variant is not None and entry.name in names:
            pairs.setdefault(entry.base_name, []).append(entry.name)
    rows = [_pair(base, of_it, table.metrics[0], values) for base, of_it in pairs.items() if len(of_it) == PAIR]
    for row in rows:
        yield row | stated_of(table, row["scenario"])
    if rows:
        ends = [f"{name}_{end}" for name in ("ratio", "spread_ratio") for end in ("low", "high")]
        yield (
            dict.fromkeys(rows[0])
            | {"scenario": ALL}
            | dict(zip(ends, _ranges(rows), strict=True))
            | stated_of(table, "all")
        )


def _ranges(rows: Sequence[dict[str, Any]]) -> Iterator[float | None]:
    """The lowest and the highest ratio, then those of the spreads."""
    for name in ("ratio", "spread_ratio"):
        found = [row[name] for row in rows if row[name] is not None]
        yield from (min(found), max(found)) if found else (None, None)


def _pair(base: str, names: Sequence[str], metric: str, values: NightValues) -> dict[str, Any]:
    """A row of one scenario; values that the night lacks are None."""
    first, second = (values.of(name).values(metric) for name in names)
    ratio, spread = _ratio(first, second), _spread_ratio(first, second)
    row: dict[str, Any] = {"scenario": base, "metric": metric}
    for place, (name, found) in enumerate(zip(names, (first, second), strict=True), 1):
        row |= {
            f"variant_{place}": name.rpartition("@")[2],
            f"value_{place}": mean(found) if found else None,
            f"spread_{place}": _share(found),
            f"repeats_{place}": len(found),
        }
    return (
        row
        | dict(zip(("ratio", "ratio_low", "ratio_high"), ratio, strict=True))
        | dict(zip(("spread_ratio", "spread_ratio_low", "spread_ratio_high"), spread, strict=True))
    )


def _share(found: Sequence[float]) -> float | None:
    return stdev(found) / mean(found) if len(found) > 1 and mean(found) else None


def _ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The geometric mean of the second over that of the first, with its interval; no interval of single runs."""
    if not first or not second or min(*first, *second) <= 0:
        return None, None, None
    one, other = ([math.log(value) for value in found] for found in (first, second))
    middle = mean(other) - mean(one)
    if len(one) < 2 or len(other) < 2:  # noqa: PLR2004 - a spread needs two
        return math.exp(middle), None, None
    errors = [variance(found) / len(found) for found in (one, other)]
    weight = sum(error**2 / (len(found) - 1) for error, found in zip(errors, (one, other), strict=True))
    degrees = max(1, math.floor(sum(errors) ** 2 / weight)) if weight else len(one) + len(other) - 2
    half = t_975(degrees) * math.sqrt(sum(errors))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def _spread_ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The spread of the second over that of the first, with its interval."""
    one, other = _share(first), _share(second)
    if not one or other is None:
        return None, None, None
    ratio, over, under = other / one, len(second) - 1, len(first) - 1
    return ratio, ratio / math.sqrt(f_975(over, under)), ratio * math.sqrt(f_975(under, over))
