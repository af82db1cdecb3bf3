"""What the rows of several tables share: the ids of their run, and the order of their columns."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from warehouse.rows.run_folder import RunId
from warehouse.schema.columns import COLUMNS, Table, arrow_schema
from warehouse.schema.row import Row


def blank_row(place: RunId) -> Row:
    """A row of `measurements` with its ids; every other column is None."""
    row: Row = dict.fromkeys(column.name for column in COLUMNS["measurements"])
    return row | run_ids(place)


def run_ids(place: RunId) -> Row:
    """The columns that name a run."""
    return {
        "night": place.night,
        "run_id": place.run_id,
        "scenario_id": place.scenario_id,
        "repeat": place.repeat,
    }


def id_arrays(place: RunId, count: int) -> dict[str, pa.Array]:
    """The columns that name a run, for `count` rows of it; the partition is not stored in the file."""
    ids = run_ids(place)
    return {name: pa.repeat(ids[name], count) for name in ("run_id", "scenario_id", "repeat")}


def in_schema(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """The columns as a table, in the order and with the types of its schema."""
    schema = arrow_schema(table)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
