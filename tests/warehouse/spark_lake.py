"""The lake in Spark SQL: its tables with their declared types, and the views that the questions select from.

sqlglot translates the SQL of views and questions. Three views use clauses that Spark lacks and are written here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warehouse.schema.columns import COLUMNS, Table
from warehouse.schema.star import METRICS
from warehouse.views import view_statements

TYPES = {
    "VARCHAR": "STRING",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "VARCHAR[]": "ARRAY<STRING>",
    "FLOAT[]": "ARRAY<FLOAT>",
    "INTEGER[]": "ARRAY<INT>",
}
VIEWS = (
    *("standing", "accepted", "standing_claims", "accepted_claims", "failures", "metric_values", "nightly_medians"),
    *("monthly_histograms", "lease_means", "repeat_history", "latest_vs_30", "night_costs", "capacity"),
)
OF_ACCEPTED = "FROM measurements WHERE verdict = 'accepted' AND is_control IS NOT TRUE"


def register(spark: Any, sqlglot: Any, lake: Path) -> None:
    """Make the tables and views of a lake known to a session of Spark."""
    for table, columns in COLUMNS.items():
        schema = ", ".join(f"`{one.name}` {TYPES.get(one.duckdb_type, one.duckdb_type)}" for one in columns)
        files = lake / table
        rows = spark.read.schema(schema).option("basePath", str(files))
        nights = [str(path) for path in sorted(files.glob("night=*"))]
        (rows.parquet(*nights) if nights else spark.createDataFrame([], schema)).createOrReplaceTempView(table)
    written = dict(_written())
    for view in VIEWS:
        sql = written[view] if view in written else translated(sqlglot, _view(lake, view))
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {sql}")


def translated(sqlglot: Any, sql: str) -> str:
    """A query of DuckDB in Spark's SQL."""
    (text,) = sqlglot.transpile(sql, read="duckdb", write="spark")
    return str(text).replace(" IGNORE NULLS", "")  # Spark takes it after FILTER only


def _view(lake: Path, view: str) -> str:
    head = f"CREATE VIEW {view} AS"
    return next(sql.split(head, maxsplit=1)[1] for sql in view_statements(lake) if head in sql)


def _written() -> Iterator[tuple[str, str]]:
    yield "standing", _standing("measurements")
    yield "standing_claims", _standing("claims")
    pairs = ", ".join(f"'{metric}', `{metric}`" for metric in METRICS)
    ids = "night, scenario_id, scenario, lease_id, coalesce(is_first_after_start, false) AS is_first"
    values = f"SELECT {ids}, withdrawn, stack({len(METRICS)}, {pairs}) AS (metric, value) {OF_ACCEPTED}"
    kept = "value IS NOT NULL AND (withdrawn IS NULL OR NOT array_contains(withdrawn, metric))"
    yield "metric_values", f"SELECT * FROM ({values}) WHERE {kept}"
    of_metric = " UNION ALL ".join(
        f"SELECT night, scenario_id, scenario, '{metric}' AS metric, posexplode({metric}_histogram) AS (place, n) "
        f"{OF_ACCEPTED} AND NOT array_contains(coalesce(withdrawn, array()), '{metric}_histogram')"
        for metric in ("ttft", "itl_event")
    )
    columns = "left(night, 7) AS month, scenario_id, max(scenario) AS scenario, metric, place + 1 AS bin"
    edges = "power(4000, place / 64) AS low_ms, power(4000, (place + 1) / 64) AS high_ms"
    groups = "left(night, 7), scenario_id, metric, place"
    counted = f"SELECT {columns}, {edges}, sum(n) AS `count` FROM ({of_metric}) WHERE n > 0 GROUP BY {groups}"
    yield "monthly_histograms", counted


def _standing(table: Table) -> str:
    numbers = (
        f"CASE WHEN array_contains(withdrawn, '{one.name}') THEN NULL ELSE `{one.name}` END AS `{one.name}`"
        if one.is_withdrawable
        else f"`{one.name}`"
        for one in COLUMNS[table]
    )
    return f"SELECT {', '.join(numbers)} FROM {table}"
