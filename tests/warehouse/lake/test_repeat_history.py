"""What earlier nights say of repeats, read from a lake as the loads write it."""

from pathlib import Path

import pytest

from bench.plan import plan_runs, with_repeats
from bench.record import NightRecord
from bench.repeats import PILOT, choose_repeats
from bench.suite.suite import ScenarioEntry, Suite
from tests.bench.builders import SCENARIO, STARTED_AT
from tests.warehouse.lake.test_repeats import FIRST, METRIC, SECOND, write
from warehouse.lake.repeat_history import read_precision, read_run_seconds, read_spreads

ENTRY = ScenarioEntry(name="chat", isl=128, osl=64, request_count=40, concurrency=1)
SUITE = Suite(name="night", repeats="plan", model=SCENARIO.model, engine=SCENARIO.engine, scenarios=(ENTRY,))
(CHAT,) = SUITE.expand()
ID = CHAT.scenario_id
OTHER = CHAT.model_copy(update={"name": "other", "workload": CHAT.workload.model_copy(update={"seed": 9})})
NEWER = CHAT.model_copy(update={"engine": CHAT.engine.model_copy(update={"version": "99.0"})})
SETUP = {"model": CHAT.model.name, "engine": CHAT.engine.name, "driver": CHAT.workload.driver}


def night(name: str, data: Path) -> NightRecord:
    drafted = NightRecord(
        night=name,
        target="local",
        started_at=STARTED_AT,
        suite=SUITE,
        suite_sha256="0" * 64,
        seed=1,
        runs=plan_runs(SUITE),
    )
    return with_repeats(drafted, [choose_repeats("chat", ID, read_spreads(data, [CHAT])[ID])])


def test_where_nothing_was_loaded_there_is_no_history_and_nothing_is_written(tmp_path: Path) -> None:
    assert read_spreads(tmp_path, [CHAT]) == {ID: []}
    assert read_run_seconds(tmp_path, [CHAT]) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_night_plans_with_the_spread_of_the_nights_before_it_and_says_what_it_reached(tmp_path: Path) -> None:
    first = night("2026-03-01", tmp_path)
    write(tmp_path, [FIRST, SECOND], "2026-03-01", scenario_id=ID, seconds=30.0)
    pilot = read_precision(tmp_path, first)
    for day in range(2, 12):
        write(tmp_path, [FIRST], f"2026-03-{day:02}", scenario_id=ID, seconds=30.0 + day)

    later = night("2026-03-12", tmp_path)
    write(tmp_path, [FIRST], "2026-03-12", scenario_id=ID, seconds=50.0)
    reached = read_precision(tmp_path, later)

    (spread,) = read_spreads(tmp_path, [CHAT])[ID]
    assert first.repeats[0].repeats == PILOT
    assert (spread.metric, spread.degrees_within, spread.degrees_between) == (METRIC, 37, 12)
    assert later.repeats[0].repeats == len(later.runs) == spread.needed
    assert "(34 degrees of freedom)" in later.repeats[0].reason
    assert read_run_seconds(tmp_path, [CHAT, OTHER]) == {ID: pytest.approx(36.0, abs=3.0)}
    own, by_all = pilot.reached[0], reached.reached[0]
    assert (own.repeats, own.half_width_expected) == (6, None)
    assert own.half_width_reached is not None
    assert by_all.repeats == 4
    assert by_all.half_width_reached == pytest.approx(spread.half_width(4))
    assert by_all.half_width_expected == pytest.approx(by_all.half_width_reached, rel=0.5)
    assert [one.repeats for one in reached.reached[1:]] == [0, 0]


def test_a_new_engine_version_plans_with_the_spread_of_the_one_before(tmp_path: Path) -> None:
    for day in range(1, 6):
        write(tmp_path, [FIRST], f"2026-03-{day:02}", scenario_id=ID, seconds=30.0, setup=SETUP)

    assert NEWER.scenario_id != ID
    (spread,) = read_spreads(tmp_path, [NEWER])[NEWER.scenario_id]
    assert spread == read_spreads(tmp_path, [CHAT])[ID][0]
    assert (spread.degrees_within, spread.degrees_between) == (15, 4)
    assert read_run_seconds(tmp_path, [NEWER]) == {NEWER.scenario_id: 30.0}


def test_a_step_between_two_versions_is_no_spread_between_leases(tmp_path: Path) -> None:
    for day in range(1, 5):
        write(tmp_path, [FIRST], f"2026-03-{day:02}", scenario_id=ID, setup=SETUP)
        write(
            tmp_path, [[2 * value for value in FIRST]], f"2026-04-{day:02}", scenario_id=NEWER.scenario_id, setup=SETUP
        )

    (spread,) = read_spreads(tmp_path, [NEWER])[NEWER.scenario_id]
    assert (spread.between, spread.degrees_between) == (0.0, 6)
    assert spread.degrees_within == 24
