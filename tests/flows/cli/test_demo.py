"""`nightbench demo`, as a user tries it first."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.errors import UsageError
from flows.cli import app
from warehouse.lake.query import run_sql


def call(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder, and what the command printed."""
    folder = tmp_path_factory.mktemp("here") / "it's a demo"
    done = call("demo", str(folder), "--simulated")
    assert done.exit_code == 0, done.output
    return folder, done.stdout


def test_each_printed_question_is_answered(demo: tuple[Path, str]) -> None:
    questions = [line for line in demo[1].splitlines() if line.startswith("nightbench ")]

    answers = [call(*shlex.split(line)[1:], "--csv") for line in questions]

    assert [one.exit_code for one in answers] == [0] * 5
    assert all(len(one.stdout.splitlines()) > 1 for one in answers)
    assert "driver" in answers[0].stdout
    assert answers[2].stdout.splitlines()[1].startswith("simulated-host-9,")


def test_the_nights_hold_an_upgrade_a_regression_a_bad_host_and_a_failed_night(demo: tuple[Path, str]) -> None:
    changes = run_sql(
        demo[0],
        "SELECT DISTINCT first_bad[:10], direction, state, cause FROM changes "
        "WHERE metric = 'output_throughput_tok_per_s' ORDER BY ALL",
    ).rows
    nights, failed = run_sql(
        demo[0], "SELECT count(DISTINCT night), count(DISTINCT night) FILTER (outcome = 'failed') FROM measurements"
    ).rows[0]

    assert ("2026-08-23", "better", "confirmed", "engine") in changes
    assert ("2026-09-10", "worse", "confirmed", "driver") in changes
    assert any(row[0] == "2026-09-25" and row[3] == "host" for row in changes)
    assert (nights, failed) == (60, 1)


def test_a_night_that_trends_name_can_be_asked_for(demo: tuple[Path, str]) -> None:
    listed = call("--data", str(demo[0]), "trends").stdout
    nights = {name for (name,) in run_sql(demo[0], "SELECT DISTINCT first_bad FROM changes").rows if name in listed}

    assert nights
    assert call("--data", str(demo[0]), "trends", "--night", max(nights)).exit_code == 0


def test_each_page_says_that_its_nights_are_simulated(demo: tuple[Path, str]) -> None:
    pages = list((demo[0] / "site").rglob("*.html"))

    assert len(pages) > 15
    assert [page.name for page in pages if "<strong>Simulated nights.</strong>" not in page.read_text()] == []


def test_the_trends_of_a_night_know_the_changes_of_earlier_nights(demo: tuple[Path, str]) -> None:
    page = (demo[0] / "site" / "night" / "2026-10-01T010000Z.html").read_text()

    assert "level since 2026-09-10: 2," in page


def test_time_between_stages_is_idle_and_paid(demo: tuple[Path, str]) -> None:
    page = (demo[0] / "site" / "night" / "2026-10-01T010000Z.html").read_text()

    assert "release 20 s, idle 1.2 min." in page
    assert "between stages 1.2 min, 0.07 USD" in page
    assert re.search(r"; measure [\d.]+ min, [\d.]+ USD, [\d,]+\.\d Wh; ", page)
    assert "no other stage has a known energy" in page


@pytest.mark.parametrize("command", ["report", "open", "rebuild"])
def test_a_command_that_needs_run_folders_says_where_the_pages_of_the_simulated_nights_are(
    demo: tuple[Path, str], command: str
) -> None:
    done = CliRunner().invoke(app, ["--data", str(demo[0]), command])

    assert isinstance(done.exception, UsageError)
    assert f"without run folders: their pages are in {demo[0] / 'site' / 'index.html'}" in str(done.exception)


def test_a_second_demo_changes_nothing(demo: tuple[Path, str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo[0].rglob("*") if path.is_file()}

    done = call("demo", str(demo[0]), "--simulated")

    assert done.stdout == demo[1]
    assert {path: path.stat().st_mtime_ns for path in demo[0].rglob("*") if path.is_file()} == before


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    done = call("demo", str(tmp_path))

    assert re.search("holds something else: name a folder that is new", str(done.exception))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_wrong_setting_is_a_sentence_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_S3_PREFIX", "a b")

    done = call("demo", str(tmp_path / "demo"), "--simulated")

    assert isinstance(done.exception, UsageError)
    assert "NIGHTBENCH_S3_PREFIX: String should match" in str(done.exception)
    assert not (tmp_path / "demo").exists()
