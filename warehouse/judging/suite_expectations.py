"""Checks what a suite's own file expects, before anything is rented: tables, columns and types must exist."""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import SuiteError
from bench.record import NightRecord
from bench.suite.expectations import Expectation
from warehouse.judging.night_views import VIEWS, views_of
from warehouse.judging.table_expectations import STARTED, parameters_of
from warehouse.judging.validation import as_library, great_expectations

_ONLY_SQL = frozenset(
    {
        "unexpected_rows_expectation",
        "expect_query_results_to_match_comparison",
        "expect_table_row_count_to_equal_other_table",
    }
)


def require_expectations(night: NightRecord) -> None:
    """Raise SuiteError with the file and key of an expectation of this night's suite that cannot be checked.

    Without expectations of its own it returns at once; with them it takes the seconds of the library's import.
    """
    if not night.expectations:
        return
    file = night.suite.quality.expectations
    for suite in night.expectations:
        if suite.name not in VIEWS:
            raise SuiteError(f"{file}: name: {suite.name!r} is not a table or view{_suggested(suite.name, VIEWS)}")
    columns = _columns({suite.name for suite in night.expectations}, night)
    for suite in night.expectations:
        for place, one in enumerate(suite.expectations):
            for what in _mistakes(one, columns, suite.name):
                raise SuiteError(f"{file}: {suite.name}: expectations.{place}: {what}")


def _columns(tables: set[str], night: NightRecord) -> dict[str, list[str]]:
    """The columns of these tables, and of those that expectations compare them with."""
    named = {
        name.split("__")[0] for suite in night.expectations for one in suite.expectations for name in parameters_of(one)
    }
    known = tables | (named & set(VIEWS))
    with TemporaryDirectory() as empty, views_of(Path(empty), night.night, known) as connection:
        return {table: connection.table(table).columns for table in known}


def _mistakes(one: Expectation, columns: dict[str, list[str]], table: str) -> Iterator[str]:
    """What is wrong with an expectation, as sentences."""
    great_expectations()
    from great_expectations.expectations.registry import (  # noqa: PLC0415 - seconds to import
        list_registered_expectation_implementations,
    )

    known = sorted(set(list_registered_expectation_implementations()) - _ONLY_SQL)
    if one.type in _ONLY_SQL:
        yield f"type: {one.type} needs a database, and the tables are checked in memory: expect it of columns instead"
    elif one.type not in known:
        yield f"type: {one.type!r} is not an expectation of great-expectations{_suggested(one.type, known)}"
    for column in one.columns:
        if column not in columns[table]:
            yield f"kwargs: {table} has no column {column!r}{_suggested(str(column), columns[table])}"
    for name in parameters_of(one):
        other, _, column = name.partition("__")
        if name != STARTED and column not in columns.get(other, ()):
            yield f"kwargs: $PARAMETER: {name!r} is neither {STARTED} nor <table>__<column> of a table or view"
    try:
        as_library(one)
    except ValueError as error:  # pydantic's
        yield f"kwargs: {' '.join(str(error).split())}"


def _suggested(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ": docs/reference/warehouse.md lists the names"
