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
(ID,) = (scenario.scenario_id for scenario in SUITE.expand())


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
    return with_repeats(drafted, [choose_repeats("chat", ID, read_spreads(data, [ID])[ID])])


def test_where_nothing_was_loaded_there_is_no_history_and_nothing_is_written(tmp_path: Path) -> None:
    assert read_spreads(tmp_path, [ID]) == {ID: []}
    assert read_run_seconds(tmp_path, [ID]) == {}
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

    (spread,) = read_spreads(tmp_path, [ID])[ID]
    assert first.repeats[0].repeats == PILOT
    assert (spread.metric, spread.degrees_within, spread.degrees_between) == (METRIC, 37, 12)
    assert later.repeats[0].repeats == len(later.runs) == spread.needed
    assert "(34 degrees of freedom)" in later.repeats[0].reason
    assert read_run_seconds(tmp_path, [ID, "other"]) == {ID: pytest.approx(36.0, abs=3.0)}
    own, by_all = pilot.reached[0], reached.reached[0]
    assert (own.repeats, own.half_width_expected) == (6, None)
    assert own.half_width_reached is not None
    assert by_all.repeats == 4
    assert by_all.half_width_reached == pytest.approx(spread.half_width(4))
    assert by_all.half_width_expected == pytest.approx(by_all.half_width_reached, rel=0.5)
    assert [one.repeats for one in reached.reached[1:]] == [0, 0]
