"""The lake in Spark: its tables with their declared types, and the views that the questions select from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.warehouse.other_engines import HISTOGRAMS, IDS, OF_ACCEPTED, OF_COUNTED, bins_of, views_in
from warehouse.schema.columns import COLUMNS, Table
from warehouse.schema.star import METRICS

TYPES = {
    "VARCHAR": "STRING",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "VARCHAR[]": "ARRAY<STRING>",
    "FLOAT[]": "ARRAY<FLOAT>",
    "INTEGER[]": "ARRAY<INT>",
}


def register(spark: Any, lake: Path) -> None:
    """Make the tables and views of a lake known to a session of Spark."""
    for table, columns in COLUMNS.items():
        schema = ", ".join(f"`{one.name}` {TYPES.get(one.duckdb_type, one.duckdb_type)}" for one in columns)
        files = lake / table
        rows = spark.read.schema(schema).option("basePath", str(files))
        nights = [str(path) for path in sorted(files.glob("night=*"))]
        (rows.parquet(*nights) if nights else spark.createDataFrame([], schema)).createOrReplaceTempView(table)
    for view, sql in views_in(lake, "spark", dict(_written())):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {sql}")


def _written() -> Iterator[tuple[str, str]]:
    yield "standing", _standing("measurements")
    yield "standing_claims", _standing("claims")
    pairs = ", ".join(f"'{metric}', `{metric}`" for metric in METRICS)
    values = f"SELECT {IDS}, stack({len(METRICS)}, {pairs}) AS (metric, value) {OF_COUNTED}"
    kept = "value IS NOT NULL AND NOT coalesce(array_contains(withdrawn, metric), false)"
    yield "metric_values", f"SELECT * FROM ({values}) WHERE {kept}"
    of_metric = " UNION ALL ".join(
        f"SELECT night, scenario_id, scenario, '{one}' AS metric, posexplode({one}_histogram) AS (place, n) "
        f"{OF_ACCEPTED} AND NOT coalesce(array_contains(withdrawn, '{one}_histogram'), false)"
        for one in HISTOGRAMS
    )
    yield "monthly_histograms", bins_of(of_metric).format(count="`count`")


def _standing(table: Table) -> str:
    """Spark has no REPLACE."""
    numbers = (
        f"CASE WHEN array_contains(withdrawn, '{one.name}') THEN NULL ELSE `{one.name}` END AS `{one.name}`"
        if one.is_withdrawable
        else f"`{one.name}`"
        for one in COLUMNS[table]
    )
    return f"SELECT {', '.join(numbers)} FROM {table}"
