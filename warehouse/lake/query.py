"""Query the warehouse in SQL, read-only."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import duckdb

from bench.errors import UsageError
from warehouse.lake.bucket.filesystem import bucket_error
from warehouse.lake.bucket.location import lake_name
from warehouse.lake.database import open_warehouse
from warehouse.sql import Sql, sql

_READING = {"SELECT", "EXPLAIN", "MULTI"}  # DESCRIBE, SHOW and SUMMARIZE are SELECT; MULTI is a PIVOT, in any statement
_ALLOWED = "use SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE, PIVOT, UNPIVOT or EXPLAIN"
_EXPLAIN = re.compile(
    r"\A(\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\s+(ANALYZE\s+)?(\((FORMAT|ANALYZE)\b[^()]*\)\s*)?", re.IGNORECASE | re.DOTALL
)
_WRITING_CLAUSE = "statement must be at the top level"


@dataclass(frozen=True)
class QueryResult:
    """The result of a query: column names and rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def ask(data: Path, sql: str, parameters: tuple[object, ...] = ()) -> QueryResult:
    """Run a query of the project's own, without the check of what a user typed, which costs as much as the query.

    Raises UsageError with DuckDB's error message if the query fails.
    """
    with _errors_as_sentences(data), open_warehouse(data) as connection:
        return _result(connection, sql, parameters)


def run_sql(data: Path, sql: str, parameters: tuple[object, ...] = (), *, limit_s: float | None = None) -> QueryResult:
    """Run one query on the warehouse of this data folder; it can read the lake and nothing else.

    Raises UsageError for any other statement, with DuckDB's error message if the query fails, and where it takes longer
    than `limit_s`.
    """

    def found() -> QueryResult:
        _require_query(connection, sql, parameters)
        return _result(connection, sql, parameters)

    with _errors_as_sentences(data), open_warehouse(data) as connection:
        return found() if limit_s is None else _stopped_after(limit_s, connection, found)


def _result(connection: duckdb.DuckDBPyConnection, sql: str, parameters: tuple[object, ...]) -> QueryResult:
    result = connection.execute(sql, list(parameters))
    return QueryResult(_apart([column[0] for column in result.description or ()]), tuple(result.fetchall()))


def _apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, each once: the second `v` is `v_1`, as DuckDB names it in a table."""
    found: dict[str, None] = {}
    for name in names:
        tries = chain([name], (f"{name}_{at}" for at in count(1)))
        found[next(one for one in tries if one not in found)] = None
    return tuple(found)


@contextmanager
def _errors_as_sentences(data: Path) -> Iterator[None]:
    try:
        yield
    except duckdb.PermissionException as error:
        raise UsageError(f"the query is refused: it can only read {lake_name(data)}; {_sentence(error)}") from error
    except duckdb.Error as error:
        raise bucket_error(error) or UsageError(f"the query failed: {_sentence(error)}") from error


def _stopped_after(
    limit_s: float, connection: duckdb.DuckDBPyConnection, query: Callable[[], QueryResult]
) -> QueryResult:
    """What a query returns; it ends after so many seconds, or with Ctrl-C.

    It runs in a thread of its own: DuckDB looks for Ctrl-C only between steps of a query, which may take many minutes.
    """
    with ThreadPoolExecutor(1, "query") as pool:
        running = pool.submit(query)
        try:
            return running.result(limit_s)
        except TimeoutError as error:
            how = "let it read fewer rows (WHERE night = ..., LIMIT), or allow more time with --limit SECONDS"
            raise UsageError(f"the query was stopped after its limit of {limit_s:g} s: {how}") from error
        finally:
            connection.interrupt()  # does nothing where the query has ended


def _require_query(connection: duckdb.DuckDBPyConnection, query: str, parameters: tuple[object, ...]) -> None:
    """Raise UsageError unless this is one statement that only reads."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the query has a byte that is not UTF-8, as its character {error.start + 1}") from error
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UsageError(f"the query has {len(statements)} statements: pass one")
    kind = statements[0].type.name
    if kind not in _READING:
        raise UsageError(f"the query is refused: {kind} is not allowed; {_ALLOWED}")
    inner = _EXPLAIN.sub("", _without_semicolon(statements[0].query))
    try:
        # In parentheses the grammar takes nothing that writes, and DuckDB refuses a WITH clause that writes.
        connection.execute(sql("EXPLAIN FROM (\n{{ inner }}\n)", inner=Sql(inner)), list(parameters))
    except (duckdb.ParserException, duckdb.BinderException) as error:
        is_no_query = isinstance(error, duckdb.ParserException) and kind != "SELECT"
        if is_no_query or _WRITING_CLAUSE in str(error):
            raise UsageError(f"the query is refused: a part of it would write; {_ALLOWED}") from error
        raise


def _without_semicolon(sql: str) -> str:
    text = sql.encode()
    offsets = [offset for offset, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    return text[: offsets[-1]].decode() if text[offsets[-1] :].startswith(b";") else sql


def _sentence(error: duckdb.Error) -> str:
    return re.sub(r"\s+", " ", str(error).split("\nLINE ", maxsplit=1)[0]).strip()
