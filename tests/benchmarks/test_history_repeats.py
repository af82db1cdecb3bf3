"""Planned repeats on a history: each scenario as exact as planned, in fewer minutes than one number for all."""

from pathlib import Path

import pytest

from bench.repeats import HALF_WIDTHS, LEAST, MOST
from benchmarks.history.plan import SUITES
from benchmarks.history.repeats import Night, Planned, nights_of
from warehouse.demo.history import HISTORY


def scenario(name: str, repeats: int) -> Planned:
    return Planned(name, repeats, 4.0, {})


def test_fixed_repeats_are_those_that_the_widest_scenario_needs() -> None:
    night = Night("vllm", 30.0, (scenario("steady", 3), scenario("wide", 20), scenario("middle", 7)))

    assert (night.fixed, night.fixed_s, night.planned_s) == (20, 30.0 + 60 * 4, 30.0 + 30 * 4)


@pytest.mark.matrix
def test_each_engine_of_the_history_has_a_night_planned_from_its_first_rounds(tmp_path: Path) -> None:
    nights = nights_of(HISTORY, tmp_path / "known", tmp_path / "later")

    assert [night.engine for night in nights] == list(SUITES)
    for night in nights:
        assert night.other_s > 0
        assert night.planned_s <= night.fixed_s
        for one in night.scenarios:
            assert LEAST <= one.repeats <= MOST
            assert one.half_widths.keys() == HALF_WIDTHS.keys()
