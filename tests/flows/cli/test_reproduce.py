"""`nightbench reproduce` up to the question; the examples of the command run a work in miniature."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import NightbenchError, UsageError
from bench.suite.pins import Lock
from catalog.read import read_works
from flows.cli import app
from flows.cli.reproduce import suite_of
from infra.loadgen.suite_lock import lock_file, write_lock


def test_without_a_name_every_work_is_listed_with_its_suite() -> None:
    shown = CliRunner().invoke(app, ["reproduce"])

    assert shown.exit_code == 0
    assert [one.work for one in read_works() if f" {one.work} " not in shown.stdout] == []
    assert [one.suite for one in read_works() if not suite_of(one.work).exists()] == []


def test_an_unknown_work_is_refused_with_the_names_of_all() -> None:
    done = CliRunner().invoke(app, ["reproduce", "llama-5"])

    assert isinstance(done.exception, UsageError)
    assert "there are: llama-70b-mi300x, amd-throughput" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["000"], "no published work is called '000'; there are: llama-70b-mi300x"),
        (["llama-4", "--target", "ssh:gpu1"], "--target 'ssh:gpu1' must have the form ssh:user@host"),
        (["llama-4", "--machine", "b200"], "b200"),
        (["llama-70b-mi300x", "--machine", "mi300x"], "mi300x"),
    ],
)
def test_wrong_arguments_are_sentences_and_nothing_is_planned_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))

    done = CliRunner().invoke(app, ["reproduce", *arguments])

    assert isinstance(done.exception, NightbenchError), done.output
    assert said in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_night_that_costs_is_planned_and_not_run_where_no_person_can_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock stays as it is; what is shown names its price."""
    suites = tmp_path / "suites"
    suites.mkdir()
    suite = suites / "llama-3.3-70b-mi300x.toml"
    suite.write_text((suite_of("llama-70b-mi300x").resolve()).read_text())
    write_lock(Lock(suite="llama-3.3-70b-mi300x", pins=(), prices=()), suite)
    before = lock_file(suite).read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))

    done = CliRunner().invoke(app, ["reproduce", "llama-70b-mi300x", "--target", "digitalocean"])

    assert isinstance(done.exception, UsageError), done.output
    assert "a run on digitalocean needs consent, and there is no terminal to ask at; add --yes" in str(done.exception)
    assert "2.59 USD/h" in done.output
    assert lock_file(suite).read_text() == before
    assert not (tmp_path / "data" / "runs").exists()
