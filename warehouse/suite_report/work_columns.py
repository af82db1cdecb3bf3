"""Which columns of a published table the report of its suite has, found in the report of a night without runs."""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bench.catalog.works import WorkTable
from bench.suite.parse import parse_suite
from bench.suite.report import ReportTable
from bench.suite.suite import Suite
from warehouse.lake.query import ask
from warehouse.sql import sql
from warehouse.suite_report.build import VIEWS, build_table
from warehouse.suite_report.measured import NightValues

SUITES = Path(__file__).parents[2] / "suites"


@cache
def columns_of_report(suite: str) -> Mapping[str, frozenset[str]]:
    """The columns of each table of a suite's report, by its title; `suite` is the name of its file."""
    path = SUITES / f"{suite}.toml"
    parsed = parse_suite(path.read_text(encoding="utf-8"), str(path))
    with tempfile.TemporaryDirectory(prefix="nightbench-columns-") as data:
        values = NightValues("none", {}, data=Path(data))
        return {table.title: frozenset(_columns(parsed, table, values)) for table in parsed.report.tables}


def _columns(suite: Suite, table: ReportTable, values: NightValues) -> set[str]:
    if table.kind in VIEWS:
        return set(ask(values.data, sql("FROM {{ view | name }} LIMIT 0", view=table.kind)).columns)
    return {name for row in build_table(suite, table, values).rows for name in row}


def missing_columns(table: WorkTable) -> list[str]:
    """The columns of a published table that the report of its suite lacks, in the order of the table."""
    if table.suite is None:
        return [one.published for one in table.all_columns]
    shown = columns_of_report(table.suite)
    return [
        one.published
        for one in table.all_columns
        if one.ours is None or one.ours not in shown.get(one.report or table.report or "", frozenset())
    ]
