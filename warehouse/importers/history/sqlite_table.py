"""Tables of SQLite files: a row a value, or a row a run with a column a metric, as in CSV tables."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from bench.errors import UnreadableResultError, UsageError
from warehouse.importers.history.long_table import HistoryOptions, rows_of, why_not_places
from warehouse.importers.history.row import HistoryRow
from warehouse.importers.parsing.document import Document
from warehouse.sql import sql

_MAGIC = b"SQLite format 3\x00"


def is_sqlite(document: Document) -> bool:
    """Whether this is a SQLite file."""
    return document.data.startswith(_MAGIC)


def read_sqlite(document: Document, options: HistoryOptions) -> Iterator[HistoryRow]:
    """Every value of the one table or view that has the needed columns, or of the one that is named.

    Raises UsageError where none has them, or several have.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.deserialize(document.data)
            table = _table(document.name, connection, options)
            cursor = connection.execute(sql("SELECT * FROM {{ table | name }}", table=table))
            header = [column[0] for column in cursor.description]
            lines = (["" if cell is None else str(cell) for cell in row] for row in cursor)
            yield from rows_of(f"{document.path.name} table {table}", header, enumerate(lines, 1), options)
        except sqlite3.Error as error:
            raise UnreadableResultError(f"{document.name} cannot be read as SQLite: {error}") from error


def _table(name: str, connection: sqlite3.Connection, options: HistoryOptions) -> str:
    kinds = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    tables: list[str] = [row[0] for row in connection.execute(kinds)]
    if options.table is not None:
        if options.table not in tables:
            raise UsageError(f"--table {options.table!r}: {name} has no such table; it has {', '.join(tables)}")
        return options.table
    why = {table: why_not_places(table, _columns(connection, table), options) for table in tables}
    fitting = [table for table in tables if why[table] is None]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{name}: pass --table with one of {', '.join(fitting)}")
    reasons = "; ".join(str(reason) for reason in why.values()) or "it has no table"
    raise UsageError(f"{name}: no table is a history: {reasons}")


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    cursor = connection.execute(sql("SELECT * FROM {{ table | name }} LIMIT 0", table=table))
    return [column[0] for column in cursor.description]
