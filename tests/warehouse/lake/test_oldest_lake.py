"""Files that the first versions wrote are read by today's views, without a rebuild."""

import shutil
from pathlib import Path

import pytest

from warehouse.lake.database import open_warehouse
from warehouse.lake.query import run_sql

KEPT = Path(__file__).parents[2] / "data" / "oldest-lake"
QUERIES = sorted((Path(__file__).parents[3] / "docs" / "how-to" / "queries").glob("*.sql"))
# Those about what had no column or no table then, and about repeats and several hosts, which these nights have not.
WITHOUT_ROWS = {
    "available-machines",
    "claims-beside-ours",
    "energy",
    "how-noisy",
    "p99-over-a-month",
    "slowest-hosts",
} | {
    "what-failed",
    "why-rejected",
}


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path_factory.mktemp("oldest") / "data"))


def test_every_row_is_there_with_its_numbers(oldest: Path) -> None:
    sql = "SELECT night, scenario, verdict, completed, round(tpot_p50_ms, 1) FROM measurements ORDER BY ALL"

    assert run_sql(oldest, sql).rows == (
        ("2026-03-01", "chat", "accepted", 400, 5.0),
        ("2026-03-01", "long", "suspect", 299, 6.0),
        ("2026-03-02", "chat", "accepted", 400, 5.1),
        ("2026-03-02", "long", "suspect", 299, 6.1),
    )


def test_gaps_are_told_in_microseconds_too(oldest: Path) -> None:
    sql = "SELECT DISTINCT itl_us[1], itl_ms[1] FROM requests WHERE outcome = 'ok' ORDER BY 1"

    assert run_sql(oldest, sql).rows == (
        (5000, 5.0),
        (5100, pytest.approx(5.1)),
        (6000, 6.0),
        (6120, pytest.approx(6.12)),
    )


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_question_is_answered(oldest: Path, path: Path) -> None:
    rows = run_sql(oldest, path.read_text("utf-8")).rows

    assert bool(rows) == (path.stem not in WITHOUT_ROWS)


def test_every_view_can_be_read(oldest: Path) -> None:
    with open_warehouse(oldest) as connection:
        views = [
            name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        counts = {name: len(connection.execute(f'SELECT * FROM "{name}" LIMIT 5').fetchall()) for name in views}

    assert counts["series_nights"] > 0
    assert counts["fact_run"] == 4
