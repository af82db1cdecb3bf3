"""The tables and views of one night, from the files that its load staged, as frames for great-expectations."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from bench.suite.expectations import Expectation
from warehouse.lake.lake import partition
from warehouse.schema.columns import COLUMNS, PARTITION, TABLES
from warehouse.sql import Sql, name, sql
from warehouse.views import QUESTIONS, view_statements
from warehouse.views.tables import PART, glob_pattern

if TYPE_CHECKING:
    import pandas as pd

OF_COLUMNS = "columns"  # the columns of every table: as they are declared, and as its file has them
# What identifies a row, where its table has such a column.
KEYS = ("run_id", "request_index", "lease_id", "attempt", "stage", "series", "metric", "search", "repeat", "code")
# They are written again when the night is judged, and not staged where this computer has no judgement.
OF_SERIES = frozenset({"series_verdicts", "change_points", "changes"})
VIEWS = (*TABLES, *QUESTIONS)
# Of the files of these only the expected columns are read.
LARGE = frozenset({"requests", "telemetry", "server_samples", "command_metrics"})


@contextmanager
def views_of(staging: Path, night: str, wanted: Collection[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which these tables and views hold one night alone, however many nights are staged."""
    with TemporaryDirectory(prefix=".night-", dir=staging) as folder, duckdb.connect() as connection:
        for table in TABLES:
            staged = partition(staging, table, night)
            if staged.is_dir():
                link = partition(Path(folder), table, night)
                link.parent.mkdir()
                link.symlink_to(staged.absolute())
        connection.execute("SET TimeZone = 'UTC'")
        for statement in _needed(Path(folder), wanted):
            connection.execute(statement)
        yield connection


def _needed(lake: Path, wanted: Collection[str]) -> Iterator[str]:
    """The SQL of these views and of those that they select from, in the order in which they can be created.

    All but the large ones become tables: each is computed once, and what selects from it does not bind it again.
    """
    statements = dict(zip(VIEWS, view_statements(lake), strict=True))
    kept = {OF_COLUMNS, *wanted}
    for view, query in reversed(statements.items()):
        if view in kept:
            kept |= statements.keys() & set(re.findall(r"\w+", query))
    for view, statement in statements.items():
        if view in kept:
            yield statement if view in LARGE else statement.replace("CREATE VIEW", "CREATE TABLE", 1)


def frame_of(connection: duckdb.DuckDBPyConnection, table: str, expectations: Sequence[Expectation]) -> "pd.DataFrame":
    """The columns of a table that these expectations name, and those that identify its rows."""
    text = " ".join(one.model_dump_json(include={"kwargs"}) for one in expectations)
    named = {*re.findall(r"\w+", text), *KEYS}
    is_whole = any(one.type.startswith("expect_table_column") for one in expectations)
    described = connection.execute(sql("DESCRIBE {{ table | name }}", table=table)).fetchall()
    chosen = [column for column, *_ in described if column in named]
    columns = Sql("*") if is_whole or not chosen else name(chosen)
    query = sql("SELECT {{ columns }} FROM {{ table | name }}", columns=columns, table=table)
    return _pandas(connection.sql(query).to_arrow_table())


def frame_of_columns(connection: duckdb.DuckDBPyConnection, staging: Path, night: str) -> "pd.DataFrame":
    """Each declared column of each staged table: its type as declared, and as its file has it; null if it has none."""
    import pandas as pd  # noqa: PLC0415

    rows = []
    for table in TABLES:
        file = partition(staging, table, night) / PART
        if table not in OF_SERIES and file.is_file():
            found = {column: kind for column, kind, *_ in connection.sql(_described(file)).fetchall()}
            rows += [
                {"table": table, "column": column.name, "declared": column.duckdb_type, "found": found.get(column.name)}
                for column in COLUMNS[table]
                if column.name != PARTITION
            ]
    return pd.DataFrame(rows, columns=["table", "column", "declared", "found"])


def _described(file: Path) -> Sql:
    pattern = glob_pattern(str(file))
    return sql("DESCRIBE FROM read_parquet({{ pattern }}, hive_partitioning=false)", pattern=pattern)


def values_of(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> list[Any]:
    """The distinct values of a column, for an expectation that compares another table with them."""
    query = sql(
        "SELECT DISTINCT {{ column | name }} FROM {{ table | name }} WHERE {{ column | name }} IS NOT NULL ORDER BY 1",
        column=column,
        table=table,
    )
    return [value for (value,) in connection.sql(query).fetchall()]


def _pandas(rows: Any) -> "pd.DataFrame":
    frame: pd.DataFrame = rows.to_pandas()
    return frame
