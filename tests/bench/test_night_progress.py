"""The state of a night from its events: what runs, how long it took and may still take, and what it costs."""

import pytest

from bench.night_progress import (
    Event,
    LoadProgress,
    NightBegan,
    NightState,
    Released,
    Rented,
    StageBegan,
    StageEnded,
    StageReported,
    clock,
)

NIGHT = "2026-03-01T010000Z"
RUNS = {"measure one": 2, "measure two": 1}


def after(
    *events: Event, expected: dict[str, float] | None = None, missing: dict[str, int] | None = None
) -> NightState:
    state = NightState()
    began = NightBegan(NIGHT, "small", "local", 4, RUNS if missing is None else missing, expected or {})
    for event in (began, *events):
        state.apply(event)
    return state


def whole(number: int, title: str, began_s: float, ended_s: float, *, is_failed: bool = False) -> tuple[Event, Event]:
    return StageBegan(number, title, began_s), StageEnded(number, ended_s, is_failed)


def test_a_night_counts_the_runs_that_earlier_parts_of_it_and_this_one_have_measured() -> None:
    state = after(*whole(1, "calibrate", 0, 5), *whole(2, "measure one #0", 5, 15))

    assert (state.runs_done, [stage.title for stage in state.running()]) == (2, [])


def test_a_stage_is_expected_to_take_the_mean_of_its_kind_in_this_night_before_that_of_earlier_nights() -> None:
    expected = {"measure one": 100.0, "server": 7.0}
    state = after(*whole(1, "measure one #0", 0, 10), *whole(2, "measure one #1", 10, 30), expected=expected)

    assert state.expected_s("measure one #2") == 15.0
    assert state.expected_s("server for two") == 7.0
    assert state.expected_s("judge") is None


def test_a_stage_that_failed_tells_nothing_of_the_next_one() -> None:
    state = after(*whole(1, "measure one #0", 0, 1, is_failed=True), expected={"measure one": 10.0})

    assert state.expected_s("measure one #1") == 10.0


def test_the_time_left_is_of_the_running_stage_the_missing_runs_and_the_end_of_the_night() -> None:
    expected = {"measure one": 10.0, "measure two": 20.0, "load": 3.0, "plan": 50.0}
    state = after(StageBegan(1, "measure one #0", 0), expected=expected)

    assert state.left_s(4.0) == 6 + 10 + 20 + 3


def test_the_time_left_has_the_repeats_that_an_earlier_night_added_until_the_night_ends() -> None:
    expected = {"measure one": 10.0, "load": 3.0}
    state = NightState()
    state.apply(NightBegan(NIGHT, "small", "local", 4, {"measure one": 1}, expected, added={"measure one": 2}))
    for event in whole(1, "measure one #0", 0, 10):
        state.apply(event)
    added = state.left_s(10.0)
    state.apply(StageBegan(2, "load", 10))

    assert (added, state.left_s(11.0)) == (10 + 10 + 3, 2.0)


def test_the_time_left_is_unknown_while_a_run_was_never_timed() -> None:
    assert after(StageBegan(1, "measure one #0", 0), expected={"measure one": 10.0}).left_s(4.0) is None


def test_a_load_tells_more_exactly_what_is_left_of_its_run() -> None:
    state = after(StageBegan(1, "measure two #0", 0), expected={"measure two": 99.0}, missing={"measure two": 1})
    state.apply(StageReported(1, load=LoadProgress(0.25, 6, 24, 35.0)))

    assert state.left_s(5.0) == 15.0
    assert state.line(5.0) == (
        "3 of 4 runs; measure two #0 0:05 of about 1:39, 6 of 24 requests, 35 tok/s, 0:15 left; about 0:15 left"
    )


def test_what_is_rented_costs_until_it_is_released_and_counts_afterwards() -> None:
    state = after(Rented("a", "gpu-x", 3.6, 0.0), Rented("b", "gpu-y", 7.2, 0.0), Released("a", 1.0))

    assert (state.usd_until(1000.0), list(state.rented)) == (3.0, ["b"])


def test_this_computer_has_no_cost_to_show() -> None:
    assert "USD" not in after(Rented("a", "local", 0.0, 0.0)).line(10.0)


def test_the_night_that_measures_suspects_again_begins_with_its_own_stages() -> None:
    state = after(*whole(1, "measure one #0", 0, 10))
    state.apply(NightBegan("2026-03-01T020000Z", "small", "local", 1, {"measure one": 1}, {}))

    assert (state.stages, state.runs_done) == ({}, 0)


def test_a_title_leaves_out_the_name_of_the_night() -> None:
    state = after(StageBegan(1, f"report {NIGHT} by its suite", 0))

    assert [stage.title for stage in state.running()] == ["report by its suite"]


def test_a_line_of_a_thread_without_a_stage_is_of_the_stage_that_began_last() -> None:
    state = after(StageBegan(1, "load", 0), StageBegan(2, "engine", 0), StageReported(None, "installing"))

    assert [stage.line for stage in state.running()] == ["", "installing"]


def test_a_copy_stays_as_it_is() -> None:
    state = after(StageBegan(1, "load", 0))
    before = state.copy()
    state.apply(StageEnded(1, 5))

    assert before.running()
    assert not state.running()


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match="not a share"):
        LoadProgress(share)


@pytest.mark.parametrize(("seconds", "shown"), [(7.4, "0:07"), (754, "12:34"), (3723, "1:02:03")])
def test_times_are_shown_as_people_read_them(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
