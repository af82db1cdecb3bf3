"""`nightbench predictions`: a planner's CSV and anybody's table beside a loaded night."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import UnreadableResultError, UsageError
from flows.cli import app
from tests.warehouse.folders import Shape, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night

NIGHT = "2026-03-01T010000Z"
FIRST_MS, GAP_MS = 20.0, 5.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("predicted"), repeats=3)


def write_data(folder: Path, repeats: int) -> Path:
    """A loaded night whose first run, the first after its server's start too, is twice as slow as the others."""
    shape = Shape(ttft_ms=FIRST_MS, gap_ms=GAP_MS, jitter=0.01)
    night = write_night(folder, NIGHT, {"chat": shape}, repeats)
    for run in night.runs:
        write_run(folder, night, run, replace(shape, ttft_ms=2 * FIRST_MS) if run.order == 0 else shape)
    load_night(folder, NIGHT)
    return folder


def write_plan(path: Path, data: Path, **changed: object) -> Path:
    """AIConfigurator's CSV for the load of the night's scenario; its first token is predicted 25 % too early."""
    query = "SELECT isl, osl, concurrency_asked FROM measurements LIMIT 1"
    ((isl, osl, concurrency),) = run_sql(data, query).rows
    row = {"isl": isl, "osl": osl, "concurrency": concurrency, "num_total_gpus": 1, "ttft": FIRST_MS / 1.25}
    row |= {"tpot": GAP_MS, "seq/s": 1.0, "tokens/s": 1.0, "tokens/s/gpu": 1.0, "tokens/s/user": 200.0} | changed
    path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    return path


def call(data: Path, *argv: str) -> str:
    found = CliRunner().invoke(app, ["--data", str(data), "predictions", NIGHT, *argv])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.stdout


def test_each_number_of_a_plan_stands_beside_what_the_night_measured(data: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.csv", data)

    rows = {one["number"]: one for one in json.loads(call(data, str(plan), "--json"))}

    assert rows["ttft_mean_s"]["share"] == pytest.approx(0.25, abs=0.01)
    assert rows["tpot_mean_s"]["share"] == pytest.approx(0.0, abs=0.01)
    assert rows["ttft_mean_s"]["low"] <= rows["ttft_mean_s"]["share"] <= rows["ttft_mean_s"]["high"]
    assert "+25.0%" in call(data, str(plan))
    assert run_sql(data, "SELECT count(*) FROM claims").rows == ((0,),), "nothing is stored"


def test_the_first_run_after_a_start_counts_only_where_a_scenario_has_no_other(tmp_path: Path) -> None:
    data = write_data(tmp_path, repeats=1)

    rows = {one["number"]: one for one in json.loads(call(data, str(write_plan(tmp_path / "p.csv", data)), "--json"))}

    assert rows["ttft_mean_s"]["share"] == pytest.approx(1.5, abs=0.02), "a night of three repeats says 0.25"


def test_a_table_of_ones_own_is_read_with_its_headers_mapped(data: Path, tmp_path: Path) -> None:
    ((isl, osl, concurrency),) = run_sql(data, "SELECT isl, osl, concurrency_asked FROM measurements LIMIT 1").rows
    table = tmp_path / "simulated.csv"
    table.write_text(f"Model,ISL,OSL,Concurrency,First (ms)\n,{isl},{osl},{concurrency},{FIRST_MS}\n")

    (row,) = json.loads(call(data, str(table), "--map", "First (ms)=mean_ttft[ms]", "--json"))

    assert row["share"] == pytest.approx(0.0, abs=0.01)


def test_a_file_that_cannot_be_read_and_a_night_without_runs_are_sentences(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.csv does not exist"):
        call(data, str(tmp_path / "absent.csv"))
    (tmp_path / "prose.csv").write_text("nothing, of use\n")
    with pytest.raises(UnreadableResultError, match=r"prose\.csv"):
        call(data, str(tmp_path / "prose.csv"))
    with pytest.raises(UsageError, match="no night 'never'"):
        CliRunner().invoke(app, ["--data", str(data), "predictions", "never", str(tmp_path)], catch_exceptions=False)
