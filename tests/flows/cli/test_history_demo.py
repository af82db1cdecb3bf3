"""`nightbench demo` on a history: nights that ran in a drawn order stand in the order of their releases."""

import csv
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from bench.errors import UsageError
from flows.cli import app
from tests.benchmarks.small_history import write_small_history
from warehouse.demo.history import load_history
from warehouse.demo.story import NEW_ENGINE, OLD_ENGINE
from warehouse.lake.query import run_sql


def call(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten nights in which two releases take turns, the newer one faster."""
    data, folder = tmp_path_factory.mktemp("measured"), tmp_path_factory.mktemp("set")
    write_small_history(data, folder)
    return folder


@pytest.fixture(scope="module")
def demo(history: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder, and what the command printed."""
    folder = tmp_path_factory.mktemp("here") / "demo"
    done = call("demo", str(folder), "--history", str(history))
    assert done.exit_code == 0, done.output
    return folder, done.stdout


def test_the_nights_stand_release_by_release_and_the_newer_release_is_found(demo: tuple[Path, str]) -> None:
    nights = run_sql(demo[0], "SELECT DISTINCT night, engine_version_found FROM accepted ORDER BY night").rows
    changes = run_sql(
        demo[0],
        "SELECT DISTINCT first_bad, direction, state, cause FROM changes "
        "WHERE metric = 'output_throughput_tok_per_s' AND state = 'confirmed'",
    ).rows

    assert [version for _, version in nights] == [OLD_ENGINE] * 5 + [NEW_ENGINE] * 5
    assert list(changes) == [(nights[5][0], "better", "confirmed", "engine")]


def test_the_times_at_which_the_nights_ran_stay_in_a_file_beside(demo: tuple[Path, str], history: Path) -> None:
    measured = pq.read_table(history / "measurements.parquet")["night"].to_pylist()
    with (demo[0] / "nights.csv").open() as lines:
        shown = {row["night"]: row["shown_as"] for row in csv.DictReader(lines)}

    assert set(shown) == {*measured, ""}
    assert {name for name in shown.values() if name} == {
        row[0] for row in run_sql(demo[0], "SELECT DISTINCT night FROM measurements").rows
    }
    assert max(shown.values())[:10] == max(measured)[:10]


def test_a_run_and_its_times_move_with_the_night(demo: tuple[Path, str]) -> None:
    rows = run_sql(demo[0], "SELECT night, run_id, strftime(started_at, '%Y-%m-%d') FROM measurements").rows

    assert all(run_id.startswith(night) and night.startswith(day) for night, run_id, day in rows)


def test_each_page_says_in_which_order_its_nights_stand(demo: tuple[Path, str]) -> None:
    pages = list((demo[0] / "site").rglob("*.html"))

    assert len(pages) > 10
    assert [page for page in pages if "Real nights, in the order of releases." not in page.read_text()] == []


def test_each_printed_question_is_answered(demo: tuple[Path, str]) -> None:
    questions = [line for line in demo[1].splitlines() if line.startswith("nightbench ")]

    answers = [call(*shlex.split(line)[1:], "--csv") for line in questions]

    assert [one.exit_code for one in answers] == [0] * 5
    assert [len(answers[at].stdout.splitlines()) > 1 for at in (0, 1, 2, 4)] == [True] * 4


def test_a_second_demo_of_the_same_history_changes_nothing(demo: tuple[Path, str], history: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo[0].rglob("*") if path.is_file()}

    assert call("demo", str(demo[0]), "--history", str(history)).stdout == demo[1]
    assert {path: path.stat().st_mtime_ns for path in demo[0].rglob("*") if path.is_file()} == before


def test_a_column_that_a_history_is_too_old_to_have_is_null(history: Path, tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.mkdir()
    for path in history.iterdir():
        (older / path.name).write_bytes(path.read_bytes())
    measured = pq.read_table(older / "measurements.parquet")
    pq.write_table(measured.drop_columns(["duration_s"]), older / "measurements.parquet")

    data = tmp_path / "demo"
    data.mkdir()
    load_history(data, older)

    durations = run_sql(data, "SELECT count(*), count(duration_s) FROM measurements").rows
    assert durations[0][0] > 0
    assert durations[0][1] == 0


def test_a_folder_without_a_history_is_named(tmp_path: Path) -> None:
    done = call("demo", str(tmp_path / "demo"), "--history", str(tmp_path))

    assert isinstance(done.exception, UsageError)
    assert "has no history" in str(done.exception)
    assert not (tmp_path / "demo").exists()
