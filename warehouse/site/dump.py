"""The accepted runs and the changes as Parquet files, for a notebook or another warehouse."""

import io
from pathlib import Path

import pyarrow.parquet as pq

from nights.durable import write_bytes
from warehouse.lake.database import open_warehouse
from warehouse.sql import sql

# In an order of their own, so that equal rows give an equal file.
DUMPS = {
    "data/measurements.parquet": ("mart_nightly", "every accepted run, a row each"),
    "data/changes.parquet": ("changes", "every change of a series that was found, a row each"),
}
_ALL = "SELECT * FROM {{ view | name }} ORDER BY ALL"


def write_dumps(data: Path, out: Path) -> None:
    """Write the files that differ from those in `out`."""
    with open_warehouse(data) as connection:
        tables = {
            address: connection.sql(sql(_ALL, view=view)).to_arrow_table() for address, (view, _) in DUMPS.items()
        }
    for address, table in tables.items():
        held = io.BytesIO()
        pq.write_table(table, held, compression="zstd")
        path = out / address
        if not path.exists() or path.read_bytes() != held.getvalue():
            write_bytes(path, held.getvalue())
