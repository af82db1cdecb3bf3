"""What the benchmark of billed minutes rests on: the emulated cloud bills what the plan said, and both do the same."""

from pathlib import Path

import pytest

from bench.cost.estimate import MEASURE, estimate_night
from benchmarks.billed_minutes import CATALOG, Work, ours, read_work, script

SUITE = Path(__file__).parents[2] / "suites" / "llama-3.3-70b-mi300x.toml"


@pytest.fixture(scope="module")
def work() -> Work:
    return read_work(SUITE, requests=3)


def test_the_cloud_bills_a_night_what_the_plan_said(work: Work) -> None:
    planned = estimate_night(work.suite, work.runs, work.site, CATALOG)

    billed = ours(work, has_snapshot=False)

    assert billed.seconds == pytest.approx(planned.billed_s, abs=15)
    assert billed.usd == pytest.approx(planned.usd, abs=0.02)
    assert sum(billed.stage_s.values()) == pytest.approx(billed.seconds, abs=5)


def test_the_script_measures_the_same_work(work: Work) -> None:
    theirs, own = script(work), ours(work, has_snapshot=True)

    assert theirs.stage_s[MEASURE] == pytest.approx(own.stage_s[MEASURE])
    assert theirs.seconds > own.seconds


def test_a_lost_machine_costs_the_script_everything_and_us_a_bring_up(work: Work) -> None:
    half = len(work.runs) // 2

    theirs, own = script(work, lost_after=half), ours(work, has_snapshot=True, lost_after=half)

    assert own.stage_s[MEASURE] == pytest.approx(ours(work, has_snapshot=True).stage_s[MEASURE])
    assert theirs.stage_s[MEASURE] > 1.3 * own.stage_s[MEASURE]
