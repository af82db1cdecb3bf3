from pathlib import Path

import pytest

from warehouse.lake.query import run_sql
from warehouse.schema.columns import TABLES
from warehouse.views import QUESTIONS

OURS = "NOT internal AND {0}name <> 'views_digest'"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder without a night."""
    return tmp_path_factory.mktemp("empty")


def test_every_view_has_a_comment(empty: Path) -> None:
    rows = run_sql(empty, f"SELECT view_name, comment FROM duckdb_views() WHERE {OURS.format('view_')}").rows

    assert {name for name, _comment in rows} == {*TABLES, *QUESTIONS}
    assert [name for name, comment in rows if not comment] == []


def test_every_column_has_a_comment(empty: Path) -> None:
    of_columns = f"SELECT table_name, column_name FROM duckdb_columns() WHERE {OURS.format('table_')}"

    assert len(run_sql(empty, of_columns).rows) > 1000
    assert run_sql(empty, f"{of_columns} AND comment IS NULL").rows == ()


def test_a_comment_ends_with_the_unit(empty: Path) -> None:
    asked = "FROM duckdb_columns() WHERE table_name = 'accepted' AND column_name = 'ttft_p99_ms'"

    assert run_sql(empty, f"SELECT comment {asked}").rows == (
        ("p99 of time to first token: request sent to first token [ms]",),
    )
