"""Repeats that a night adds: the next follows from the run folders alone, and every row says why there are no more."""

from pathlib import Path

import pytest

from bench.record import NightRecord, PlannedRun
from infra.storage import store
from infra.storage.added_repeats import due_repeats, next_repeat
from tests.warehouse.folders import QUALITY, QUIET, Shape, Told, write_night, write_run
from warehouse.lake.query import run_sql
from warehouse.load import load_night

NIGHT = "2026-03-01"
ROWS = 'SELECT "repeat", verdict, repeats_ended_by FROM measurements ORDER BY "repeat"'
ASKED = "SELECT DISTINCT half_width_max, scenario_s FROM measurements"
SERIES = "SELECT value, repeat_count, spread FROM series_nights WHERE metric = 'tpot_p50_ms'"
UNSTABLE = "SELECT DISTINCT status, message FROM findings WHERE code = 'unstable'"


def planned(data: Path, *, scenario_s: float = 1000.0, repeats: int = 2, runs_s: float | None = None) -> NightRecord:
    """A night of one scenario, whose suite asks for an interval of ± 5 %."""
    night = write_night(data, NIGHT, {"chat": Shape()}, repeats=repeats)
    quality = QUALITY.model_copy(update={"half_width_max": 0.05, "scenario_s": scenario_s, "runs_s": runs_s})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"quality": quality})})
    store.write_json(store.night_file(data, NIGHT), night)
    return night


def added_until_it_ends(data: Path, night: NightRecord, *gaps_ms: float) -> list[PlannedRun]:
    """Measure the planned runs and those that are added, one after another at these speeds; gives the added ones."""
    speeds, added = iter(gaps_ms), list[PlannedRun]()
    for run in night.runs:
        write_run(data, night, run, Shape(gap_ms=next(speeds)))
    while (following := next_repeat(data, night, night.runs[0])) is not None:
        added.append(following)
        write_run(data, night, following, Shape(gap_ms=next(speeds)))
    return added


def test_repeats_are_added_until_three_after_the_first_agree(tmp_path: Path) -> None:
    night = planned(tmp_path)

    added = added_until_it_ends(tmp_path, night, 9.0, 5.0, 5.02, 5.0)
    load_night(tmp_path, NIGHT)

    assert [(run.repeat, run.order) for run in added] == [(2, 2), (3, 3)]
    assert list(run_sql(tmp_path, ROWS).rows) == [(repeat, "accepted", "narrow") for repeat in range(4)]
    assert list(run_sql(tmp_path, ASKED).rows) == [(0.05, 1000.0)]
    ((status, message),) = run_sql(tmp_path, UNSTABLE).rows
    assert status == "PASS"
    assert "3 repeats" in message
    assert "± 5.0% asked" in message


def test_what_stays_wide_is_suspect_with_its_interval_and_no_run_is_rejected(tmp_path: Path) -> None:
    night = planned(tmp_path, scenario_s=0.0)

    assert added_until_it_ends(tmp_path, night, 5.0, 5.0) == []

    night = planned(tmp_path / "wide", repeats=4, scenario_s=0.0)
    added_until_it_ends(tmp_path / "wide", night, 5.0, 4.0, 8.0, 5.0)
    load_night(tmp_path / "wide", NIGHT)

    verdicts = list(run_sql(tmp_path / "wide", ROWS).rows)
    assert verdicts == [(0, "accepted", "time"), *((repeat, "suspect", "time") for repeat in (1, 2, 3))]
    ((status, message),) = run_sql(tmp_path / "wide", UNSTABLE).rows
    assert status == "WARN"
    assert "during it other processes took 1.2% of the CPU time" in message
    ((value, count, spread),) = run_sql(tmp_path / "wide", SERIES).rows
    assert (count, spread > 0.2) == (3, True), "what is only wide counts, by its interval"
    assert value == pytest.approx(5.43, abs=0.01)


def test_no_repeat_is_added_beyond_the_seconds_of_the_whole_night(tmp_path: Path) -> None:
    night = planned(tmp_path, repeats=3, runs_s=1.0)

    assert added_until_it_ends(tmp_path, night, 5.0, 4.0, 8.0) == []
    load_night(tmp_path, NIGHT)

    assert {ended for _repeat, _verdict, ended in run_sql(tmp_path, ROWS).rows} == {"time"}


@pytest.mark.parametrize("is_failed", [True, False], ids=["failed", "not run yet"])
def test_a_failed_or_missing_repeat_adds_none(tmp_path: Path, *, is_failed: bool) -> None:
    night = planned(tmp_path)
    write_run(tmp_path, night, night.runs[0], Shape())
    if is_failed:
        write_run(
            tmp_path, night, night.runs[1], Shape(), Told(outcome="failed", stage="measure", reason="the engine exited")
        )

    assert next_repeat(tmp_path, night, night.runs[0]) is None


def test_a_resumed_night_adds_to_a_scenario_that_it_stopped_at_and_not_to_one_that_is_missing(tmp_path: Path) -> None:
    night = planned(tmp_path)
    for run, gap_ms in zip(night.runs, (5.0, 9.0), strict=True):
        write_run(tmp_path, night, run, Shape(gap_ms=gap_ms))

    assert due_repeats(tmp_path, night, missing=[]) == [night.runs[-1]]
    assert due_repeats(tmp_path, night, missing=[night.runs[-1]]) == []


def test_a_suite_that_asks_for_no_interval_gets_the_repeats_that_it_plans(tmp_path: Path) -> None:
    night = write_night(tmp_path, NIGHT, {"chat": Shape()}, repeats=2)
    for run, gap_ms in zip(night.runs, (5.0, 9.0), strict=True):
        write_run(tmp_path, night, run, Shape(gap_ms=gap_ms))

    assert next_repeat(tmp_path, night, night.runs[0]) is None


@pytest.mark.parametrize(("share", "verdict"), [(0.012, "rejected"), (0.6, "suspect")])
def test_a_load_that_others_slowed_is_suspect_and_one_that_nobody_did_is_rejected(
    tmp_path: Path, share: float, verdict: str
) -> None:
    """Of the four requests that the suite asks for at the same time, one was in flight."""
    night = write_night(tmp_path, NIGHT, {"chat": Shape(concurrency=4)})
    use = QUIET.model_copy(update={"other_cpu_share": share})
    write_run(tmp_path, night, night.runs[0], Shape(concurrency=1), Told(host_use=use))
    load_night(tmp_path, NIGHT)

    assert run_sql(tmp_path, "SELECT verdict FROM measurements").rows[0][0] == verdict
    doubts = {code for (code,) in run_sql(tmp_path, "SELECT code FROM findings WHERE severity <> 'info'").rows}
    assert "concurrency_not_reached" in doubts
    assert ("busy_host" in doubts) == (verdict == "suspect")
