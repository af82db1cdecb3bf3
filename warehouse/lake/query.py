"""Query the warehouse in SQL, read-only."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.errors import UsageError
from warehouse.lake.database import open_warehouse


@dataclass(frozen=True)
class QueryResult:
    """The result of a query: column names and rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run_sql(data: Path, sql: str, parameters: tuple[object, ...] = ()) -> QueryResult:
    """Run one query on the warehouse of this data folder.

    Raises UsageError with DuckDB's error message if the query fails.
    """
    with open_warehouse(data) as connection:
        try:
            result = connection.execute(sql, list(parameters))
            columns = tuple(column[0] for column in result.description or ())
            return QueryResult(columns, tuple(result.fetchall()))
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {_sentence(error)}") from error


def _sentence(error: duckdb.Error) -> str:
    return re.sub(r"\s+", " ", str(error).split("\nLINE ", maxsplit=1)[0]).strip()
