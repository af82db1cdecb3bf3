"""Every table of the lake and its columns.

Parquet schemas, typed views, the reference page and bounds checks are generated from these declarations. `night` is
the partition folder: it is declared, but not stored in a file.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import pyarrow as pa

from bench.audit.rules.wording import range_text
from warehouse.schema.claim_columns import CLAIM_COLUMNS, CLAIM_IDS, CLAIM_REQUEST_COLUMNS
from warehouse.schema.column import Column
from warehouse.schema.expectation_columns import EXPECTATION_COLUMNS
from warehouse.schema.history_columns import HISTORY_POINT_COLUMNS, HISTORY_REMARK_COLUMNS
from warehouse.schema.lease_columns import ATTEMPT_COLUMNS, LEASE_COLUMNS, OTHER_COST_COLUMNS, STAGE_COLUMNS
from warehouse.schema.measurement_columns import MEASUREMENT_COLUMNS
from warehouse.schema.night_columns import (
    CANARY_COLUMNS,
    COMMAND_COLUMNS,
    SCORE_COLUMNS,
    SEARCH_COLUMNS,
    TUNING_COLUMNS,
)
from warehouse.schema.request_columns import REQUEST_COLUMNS
from warehouse.schema.sample_columns import SERVER_SAMPLE_COLUMNS, TELEMETRY_COLUMNS
from warehouse.schema.shared_columns import FINDING, IDS
from warehouse.schema.trend_columns import ACKNOWLEDGEMENT_COLUMNS, CHANGE_COLUMNS, VERDICT_COLUMNS

Table = Literal[
    "measurements",
    "requests",
    "telemetry",
    "server_samples",
    "command_metrics",
    "findings",
    "expectations",
    "leases",
    "attempts",
    "stages",
    "other_costs",
    "canary",
    "quality_scores",
    "search_probes",
    "tuning",
    "claims",
    "claim_requests",
    "claim_findings",
    "history_points",
    "history_remarks",
    "series_verdicts",
    "change_points",
    "acknowledgements",
]

TABLES: tuple[Table, ...] = get_args(Table)

PARTITION = "night"

COLUMNS: dict[Table, tuple[Column, ...]] = {
    "measurements": MEASUREMENT_COLUMNS,
    "requests": REQUEST_COLUMNS,
    "telemetry": TELEMETRY_COLUMNS,
    "server_samples": SERVER_SAMPLE_COLUMNS,
    "command_metrics": COMMAND_COLUMNS,
    "findings": (*IDS, *FINDING),
    "expectations": EXPECTATION_COLUMNS,
    "leases": LEASE_COLUMNS,
    "attempts": ATTEMPT_COLUMNS,
    "stages": STAGE_COLUMNS,
    "other_costs": OTHER_COST_COLUMNS,
    "canary": CANARY_COLUMNS,
    "quality_scores": SCORE_COLUMNS,
    "search_probes": SEARCH_COLUMNS,
    "tuning": TUNING_COLUMNS,
    "claims": CLAIM_COLUMNS,
    "claim_requests": CLAIM_REQUEST_COLUMNS,
    "claim_findings": (*CLAIM_IDS, *FINDING),
    "history_points": HISTORY_POINT_COLUMNS,
    "history_remarks": HISTORY_REMARK_COLUMNS,
    "series_verdicts": VERDICT_COLUMNS,
    "change_points": CHANGE_COLUMNS,
    "acknowledgements": ACKNOWLEDGEMENT_COLUMNS,
}


def withdrawn_columns(table: Table, row: Mapping[str, Any], prefixes: tuple[str, ...]) -> list[str]:
    """The numeric columns of a row whose names have one of these prefixes and that are not NULL."""
    return [
        column.name
        for column in COLUMNS[table]
        if column.is_withdrawable and column.name.startswith(prefixes) and row.get(column.name) is not None
    ]


def arrow_schema(table: Table) -> Any:
    """The schema of a table's Parquet files: every column but the partition."""
    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "texts": pa.list_(pa.string()),
        "gaps": pa.list_(pa.float32()),
        "counts": pa.list_(pa.int32()),
    }
    return pa.schema(
        [
            pa.field(column.name, types[column.type], nullable=column.nullable)
            for column in COLUMNS[table]
            if column.name != PARTITION
        ]
    )


def with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of this schema, in its types; one that the rows are too old to have is NULL."""
    known = set(rows.schema.names)  # to ask for them again at each of hundreds of columns takes a while
    return pa.table(
        {
            field.name: rows[field.name].cast(field.type) if field.name in known else pa.nulls(len(rows), field.type)
            for field in schema
        }
    )


def outside_bounds(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of a measurement whose value is outside its bounds; NULL is always allowed."""
    return tuple(column.name for column in COLUMNS["measurements"] if not _is_possible(column, row.get(column.name)))


def _is_possible(column: Column, value: Any) -> bool:
    if value is None or column.low is column.high is None:
        return True
    return (column.low is None or value >= column.low) and (column.high is None or value <= column.high)


def tables_markdown() -> str:
    """Every table with its columns, in Markdown."""
    parts = []
    for table in TABLES:
        head = f"\n### {table}\n\n| column | type | unit | bounds | meaning |\n|---|---|---|---|---|\n"
        parts.append(head + "".join(_reference_row(column) for column in COLUMNS[table]))
    return "".join(parts)


def _reference_row(column: Column) -> str:
    possible = "" if column.low is column.high is None else range_text((column.low, column.high))
    kind = column.duckdb_type if column.nullable else f"{column.duckdb_type}, never NULL"
    return f"| `{column.name}` | {kind} | {column.unit or ''} | {possible} | {column.meaning} |\n"
