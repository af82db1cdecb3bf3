"""Stage what was found of a night's expectations: their rows, and great-expectations' pages of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.record import NightRecord
from nights.durable import write_text
from warehouse.judging.data_docs import data_docs
from warehouse.judging.night_views import OF_SERIES
from warehouse.judging.table_expectations import TablesChecked, check_tables
from warehouse.lake.lake import DOCS, DOCS_OF_SERIES, STAGING, VALIDATION, partition, write_rows
from warehouse.schema.row import Row
from warehouse.views.tables import PART


def stage_expectations(staging: Path, night: str, checked: TablesChecked, evidence: Any) -> None:
    """Stage the rows of every expectation of a night, and the pages, `evidence` before the tables."""
    rest = {table: one for table, one in checked.results.items() if table not in OF_SERIES}
    _write_rows(staging, night, checked.rows)
    write_text(partition(staging, VALIDATION, night) / DOCS, data_docs({"evidence": evidence, **rest}))
    _write_docs_of_series(staging, night, checked.results)


def stage_expectations_of_series(lake: Path, night: str, plan: NightRecord | None) -> None:
    """Stage those rows again, of the series that were judged since, with the page of these."""
    checked = check_tables(lake / STAGING, night, plan, OF_SERIES)
    part = partition(lake, "expectations", night) / PART
    stored: list[Row] = pq.ParquetFile(part).read().to_pylist() if part.is_file() else []
    rest = [{"night": night} | row for row in stored if row["table_name"] not in OF_SERIES]
    _write_rows(lake / STAGING, night, [*rest, *checked.rows])
    _write_docs_of_series(lake / STAGING, night, checked.results)


def _write_rows(staging: Path, night: str, rows: list[Row]) -> None:
    write_rows(staging, "expectations", night, sorted(rows, key=lambda row: str(row["table_name"])))


def _write_docs_of_series(staging: Path, night: str, results: Mapping[str, Any]) -> None:
    if judged := {table: one for table, one in results.items() if table in OF_SERIES}:
        write_text(partition(staging, VALIDATION, night) / DOCS_OF_SERIES, data_docs(judged))
