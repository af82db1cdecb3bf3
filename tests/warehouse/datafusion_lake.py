"""The lake in DataFusion: its tables with their declared types, and the views that the questions select from."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext

from tests.warehouse.other_engines import HISTOGRAMS, IDS, OF_ACCEPTED, OF_COUNTED, bins_of, views_in
from warehouse.schema.columns import PARTITION, TABLES, arrow_schema
from warehouse.schema.star import METRICS


def open_lake(lake: Path) -> SessionContext:
    """A session that knows the tables and views of a lake."""
    session = SessionContext()
    for table in TABLES:
        schema, partition = arrow_schema(table), pa.field(PARTITION, pa.string())
        if (lake / table).is_dir():  # it leaves out the folders of months, which have no night
            nights = [(PARTITION, partition.type)]
            session.register_parquet(table, lake / table, table_partition_cols=nights, schema=schema)
        else:
            session.from_arrow(schema.append(partition).empty_table(), table)
    for view, sql in views_in(lake, "datafusion", dict(_written())):
        session.sql(f"CREATE VIEW {view} AS {sql}")
    return session


def _written() -> Iterator[tuple[str, str]]:
    names, values = ", ".join(f"'{one}'" for one in METRICS), ", ".join(METRICS)
    rows = f"SELECT {IDS}, unnest([{names}]) AS metric, unnest([{values}]) AS value {OF_COUNTED}"
    kept = "value IS NOT NULL AND NOT coalesce(list_contains(withdrawn, metric), false)"
    yield "metric_values", f"SELECT * FROM ({rows}) AS rows WHERE {kept}"
    of_metric = " UNION ALL ".join(
        f"SELECT night, scenario_id, scenario, '{one}' AS metric, unnest({one}_histogram) AS n, "
        f"unnest(range(0, array_length({one}_histogram))) AS place "
        f"{OF_ACCEPTED} AND NOT coalesce(list_contains(withdrawn, '{one}_histogram'), false)"
        for one in HISTOGRAMS
    )
    yield "monthly_histograms", bins_of(of_metric).format(count='"count"')
