"""The questions of docs/how-to/query-the-warehouse.md, each answered by a small warehouse."""

from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.simulated_lake import SLOW, write_lake
from warehouse.lake.query import run_sql

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = HOW_TO / "query-the-warehouse.md"
QUERIES = sorted((HOW_TO / "queries").glob("*.sql"))
NIGHTS = 6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nights in two months on three hosts, the last of which is slow, with an upgrade of the engine on the way."""
    return write_lake(tmp_path_factory.mktemp("simulated"), NIGHTS)


def _ask(data: Path, name: str) -> list[dict[str, Any]]:
    return run_sql(data, (HOW_TO / "queries" / f"{name}.sql").read_text()).dicts()


def test_there_are_twelve() -> None:
    assert len(QUERIES) == 12


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_question_has_an_answer_without_an_empty_column(data: Path, path: Path) -> None:
    rows = _ask(data, path.stem)

    assert rows
    assert [name for name in rows[0] if all(row[name] is None for row in rows)] == []


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_the_page_has_every_question_with_its_file(path: Path) -> None:
    question = path.read_text().split("\n")[0].removeprefix("-- ")

    assert f"| {question} | [{path.stem}](queries/{path.name}) |" in PAGE.read_text()


def test_a_slow_host_comes_first(data: Path) -> None:
    worst = _ask(data, "slowest-hosts")[0]

    assert worst["host"] == "host-slow"
    assert worst["share_of_typical"] == pytest.approx(SLOW, abs=0.01)


def test_failed_runs_are_counted_by_their_reason(data: Path) -> None:
    assert _ask(data, "what-failed") == [
        {"stage": "server", "reason": "out of memory", "runs": 6, "nights": 6, "last_night": "2026-02-05T010000Z"}
    ]


def test_the_cost_of_a_month_is_that_of_its_leases(data: Path) -> None:
    assert [(row["month"], row["nights"], row["usd"]) for row in _ask(data, "cost-of-benchmarking")] == [
        ("2026-01", 5, 50.0),
        ("2026-02", 1, 10.0),
    ]


def test_the_p99_of_a_month_is_of_all_its_accepted_requests(data: Path) -> None:
    january = _ask(data, "p99-over-a-month")[0]

    assert (january["month"], january["scenario"], january["requests"]) == ("2026-01", "s0", 5 * 3 * 100)
    assert january["ttft_p99_ms"] == pytest.approx(20.09 * 2.718 ** (2.326 * 0.2), rel=0.1)
