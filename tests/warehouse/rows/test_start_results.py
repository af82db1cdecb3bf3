"""The columns of a server's start: each is written, shown on the night's timeline, and withdrawn where it cannot be."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from bench.server_facts import StartPhases
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import STARTED, Shape, Told, write_night, write_run
from tests.warehouse.simulated_lake import write
from warehouse.lake.database import build_warehouse
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.report.night.timeline import timeline_html
from warehouse.rows.run_folder import RunId, read_run
from warehouse.rows.run_rows import run_rows
from warehouse.schema.row import Row
from warehouse.schema.start_columns import PHASES, START_COLUMNS
from warehouse.trends.find import find_trends

START = StartPhases(
    started_at=STARTED, import_s=4.0, download_s=0.5, weights_s=1.0, device_s=0.5, compilation_s=2.0,
    graph_capture_s=1.0, warmup_s=0.5, first_answer_s=0.25, compile_cache="cold", unread=("a line says nothing",),
)  # fmt: skip


def _night(data: Path, start: StartPhases | None) -> Row:
    """A night of one run whose server, ready after 12 s, started so."""
    night = write_night(data, NIGHT, {"chat": Shape()})
    folder = write_run(data, night, night.runs[0], Shape(), Told(server={"start": start}))
    return run_rows(RunId(NIGHT, folder.parent.name, 0), read_run(folder)).measurement


def test_every_column_of_a_start_is_written(tmp_path: Path) -> None:
    row = _night(tmp_path, START)

    written = {column.name for column in START_COLUMNS if row[column.name] is not None}
    assert {column.name for column in START_COLUMNS} - written == {"warm_startup_s", "warm_compilation_s"}
    assert (row["start_other_s"], row["cold_startup_s"], row["cold_compilation_s"]) == (2.25, 12.0, 2.0)
    assert row["start_not_read"] == "a line says nothing"


@pytest.mark.parametrize(
    "start", [None, START.model_copy(update={"compile_cache": "mixed"}), StartPhases(started_at=STARTED)]
)
def test_what_is_not_known_of_a_start_is_null(tmp_path: Path, start: StartPhases | None) -> None:
    row = _night(tmp_path, start)

    assert (row["cold_startup_s"], row["warm_startup_s"], row["cold_compilation_s"]) == (None, None, None)
    if start is None or not start.phases:
        assert {row[name] for name in (*PHASES, "start_other_s")} == {None}


def test_a_start_is_one_row_and_its_phases_follow_one_another(tmp_path: Path) -> None:
    _night(tmp_path, START)
    load_night(tmp_path, NIGHT)

    starts = run_sql(tmp_path, "SELECT cold_start_s, compile_cache, start_weights_s, runs FROM server_starts").rows
    phases = run_sql(
        tmp_path, "SELECT phase, epoch(began_at - server_started_at), epoch(ended_at - began_at) FROM start_phases"
    ).rows
    assert starts == ((12.0, "cold", 1.0, 1),)
    assert [row[0] for row in phases] == [name.removeprefix("start_").removesuffix("_s") for name in PHASES]
    assert [row[1] for row in phases] == [0.0, 4.0, 4.5, 5.5, 6.0, 8.0, 9.0, 9.5]
    assert [row[2] for row in phases] == list(START.phases.values())
    assert "start: graph_capture" in timeline_html(tmp_path, NIGHT)


def test_a_start_that_became_slower_is_found_and_one_with_another_cache_is_no_change(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    for at in range(30):
        night, started_at = f"n{at:02}", STARTED + timedelta(days=at)
        # Every third start is cold; from the twentieth night on, weights take half as long again.
        start = {"cold_compilation_s": 90.0} if at % 3 == 0 else {"warm_compilation_s": 9.0}
        numbers = {**start, "start_weights_s": 12.0 if at >= 20 else 8.0}
        noisy = {name: value * float(np.exp(draw.normal(0, 0.005))) for name, value in numbers.items()}
        ids = {"night": night, "run_id": night, "scenario_id": "s", "repeat": 0, "lease_id": night}
        stack = {"suite": "a", "scenario": "s", "model": "m", "engine": "vllm", "host": "h", "gpus": ["g"]}
        good = {"outcome": "measured", "verdict": "accepted", "is_control": False, "started_at": started_at}
        write(tmp_path / "lake", "measurements", night, [ids | stack | good | noisy])
    build_warehouse(tmp_path)

    found = {(row["metric"], row["direction"], row["first_bad"]) for row in find_trends(tmp_path).rows()}

    assert found == {("start_weights_s", "worse", "n20")}


def test_times_that_our_clock_contradicts_are_withdrawn_and_the_run_counts(tmp_path: Path) -> None:
    _night(tmp_path, START.model_copy(update={"weights_s": 30.0}))
    load_night(tmp_path, NIGHT)

    found = run_sql(
        tmp_path,
        "SELECT status, verdict, start_weights_s, cold_start_s FROM standing JOIN findings USING (night, run_id)"
        " WHERE code = 'start_longer_than_measured'",
    ).rows
    assert found == (("FAIL", "accepted", None, 12.0),)
