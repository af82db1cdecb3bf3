"""The lake in other engines: the views that the questions select from, in the SQL of Spark and of DataFusion.

sqlglot translates the SQL of views and questions. `metric_values` and `monthly_histograms` unpivot columns and lists,
which each engine writes in its own way; `latest_vs_30` uses a function that only DuckDB has.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from warehouse.views import view_statements

# Each after those that it selects from.
VIEWS = (
    *("standing", "accepted", "standing_claims", "accepted_claims", "failures", "metric_values", "nightly_medians"),
    *("monthly_histograms", "lease_means", "repeat_history", "latest_vs_30", "night_costs", "capacity"),
)
HISTOGRAMS = ("ttft", "itl_event")
OF_ACCEPTED = "FROM measurements WHERE verdict = 'accepted' AND is_control IS NOT TRUE"
OF_COUNTED = OF_ACCEPTED.replace("verdict = 'accepted'", "(verdict = 'accepted' OR coalesce(is_only_noisy, false))")
IDS = (
    "night, scenario_id, scenario, lease_id, coalesce(is_first_after_start, false) AS is_first, "
    "coalesce(is_only_noisy, false) AS is_noisy, withdrawn"
)
# DuckDB takes the newest medians by arg_max with a count, which they lack.
LATEST_VS_30 = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY scenario_id, metric ORDER BY night DESC) AS age FROM nightly_medians
),
latest AS (SELECT scenario_id, scenario, metric, night, median AS latest FROM ranked WHERE age = 1),
earlier AS (
    SELECT scenario_id, metric, median(median) AS before, count(*) AS nights_before
    FROM ranked WHERE age BETWEEN 2 AND 31 GROUP BY scenario_id, metric
)
SELECT latest.scenario_id, latest.scenario, latest.metric, latest.night, latest.latest, earlier.before,
    latest.latest / nullif(earlier.before, 0) AS ratio, coalesce(earlier.nights_before, 0) AS nights_before
FROM latest LEFT JOIN earlier ON latest.scenario_id = earlier.scenario_id AND latest.metric = earlier.metric
"""


def views_in(lake: Path, dialect: str, written: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The queries of the views over this lake by name: as written for an engine, or else translated."""
    ours = {"latest_vs_30": LATEST_VS_30, **written}
    for view in VIEWS:
        yield view, ours[view] if view in ours else translated(_query(lake, view), dialect)


def translated(sql: str, dialect: str) -> str:
    """A query of DuckDB in the SQL of another engine."""
    (text,) = sqlglot.transpile(sql, read="duckdb", write=dialect)
    return text.replace(" IGNORE NULLS", "")  # Spark takes it after FILTER only


def bins_of(unnested: str) -> str:
    """The query of monthly_histograms over (night, scenario_id, scenario, metric, place, n); the first place is 0."""
    edges = "power(4000.0, place / 64.0) AS low_ms, power(4000.0, (place + 1) / 64.0) AS high_ms"
    columns = f"left(night, 7) AS month, scenario_id, max(scenario) AS scenario, metric, place + 1 AS bin, {edges}"
    groups = "left(night, 7), scenario_id, metric, place"
    return f"SELECT {columns}, sum(n) AS {{count}} FROM ({unnested}) AS bins WHERE n > 0 GROUP BY {groups}"


def _query(lake: Path, view: str) -> str:
    head = f"CREATE VIEW {view} AS"
    return next(sql.split(head, maxsplit=1)[1] for sql in view_statements(lake) if head in sql)


def _at_extreme(order: str) -> Callable[[DuckDBGenerator, exp.Expr], str]:
    """Write the value of a column in the row with the greatest or least value of another one."""

    def write(self: DuckDBGenerator, node: exp.Expr) -> str:
        return f"first_value({self.sql(node, 'this')} ORDER BY {self.sql(node, 'expression')} {order} NULLS LAST)"

    return write


class _Generator(DuckDBGenerator):
    TRANSFORMS = DuckDBGenerator.TRANSFORMS | {
        exp.ArgMax: _at_extreme("DESC"),
        exp.ArgMin: _at_extreme("ASC"),
        exp.Variance: lambda self, node: self.func("var_samp", node.this),
    }


class DataFusion(DuckDB):
    """SQL of DataFusion, of which sqlglot has no dialect: that of DuckDB, with these exceptions."""

    TYPED_DIVISION = True  # 3 / 64 is 0
    Generator = _Generator
