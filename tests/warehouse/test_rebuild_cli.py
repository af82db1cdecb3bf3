"""`nightbench load` and `rebuild --prune` at the command line: what is removed is listed, and agreed to before."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.errors import UsageError
from flows.cli import app
from tests.warehouse.folders import whole_night
from warehouse.lake.query import run_sql

ONE, TWO = "2026-03-01", "2026-03-02"
NIGHTS = "SELECT DISTINCT night FROM measurements ORDER BY 1"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder whose lake has two nights, one of them without run folders."""
    for night in (ONE, TWO):
        whole_night(tmp_path, night)
    assert nightbench(tmp_path, "load", ONE, TWO).exit_code == 0
    (tmp_path / "runs" / ONE).rename(tmp_path / "elsewhere")
    return tmp_path


def nightbench(data: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--data", str(data), *words])


def test_a_night_is_loaded_by_its_name_and_the_others_stay(data: Path) -> None:
    done = nightbench(data, "load", TWO)

    assert (done.exit_code, done.stdout) == (0, f"loaded {TWO}: 1 accepted\n")
    assert run_sql(data, NIGHTS).rows == ((ONE,), (TWO,))


def test_a_night_that_is_not_here_is_not_loaded(data: Path) -> None:
    assert "no night" in str(nightbench(data, "load", ONE).exception)


def test_a_rebuild_keeps_the_nights_of_others(data: Path) -> None:
    assert nightbench(data, "rebuild").exit_code == 0
    assert run_sql(data, NIGHTS).rows == ((ONE,), (TWO,))


def test_a_prune_lists_what_it_would_remove_and_needs_an_agreement(data: Path) -> None:
    refused = nightbench(data, "rebuild", "--prune")

    assert isinstance(refused.exception, UsageError)
    assert "there is no terminal; add --yes" in str(refused.exception)
    assert f"{ONE}: in {data / 'lake'} and not in {data}" in refused.stdout
    assert run_sql(data, NIGHTS).rows == ((ONE,), (TWO,))
    assert f"removed {ONE}" in nightbench(data, "rebuild", "--prune", "--yes").stdout
    assert run_sql(data, NIGHTS).rows == ((TWO,),)
