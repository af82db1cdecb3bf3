"""Waiting and trying again, on a clock that only sleeping moves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from infra.clock import growing, poll, retry
from tests.emulators.virtual_clock import VirtualClock
from tests.stepped_clock import STEPS_S, SteppedMidway


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock", start_s=0.0)


def after(calls: int, result: object) -> Callable[[], object | None]:
    """None until it was called so many times."""
    left = [calls]

    def until() -> object | None:
        left[0] -= 1
        return result if left[0] <= 0 else None

    return until


@pytest.mark.parametrize("result", ["found", 0, ""])
def test_poll_returns_the_first_result_that_is_neither_none_nor_false(clock: VirtualClock, result: object) -> None:
    assert poll(clock, 5.0, after(3, result), within_s=60.0) == result
    assert clock.now_s() == 10.0


def test_poll_gives_up_after_a_last_call_when_its_time_is_over(clock: VirtualClock) -> None:
    calls: list[float] = []

    def until() -> bool:
        calls.append(clock.now_s())
        return False

    assert poll(clock, 5.0, until, within_s=12.0) is None
    assert calls == [0.0, 5.0, 10.0, 15.0]


def test_poll_calls_at_least_once(clock: VirtualClock) -> None:
    assert poll(clock, 5.0, lambda: "there", within_s=0.0) == "there"


def test_poll_asks_for_each_pause_where_they_grow(clock: VirtualClock) -> None:
    assert poll(clock, growing(1.0, 3.0), after(5, "there")) == "there"
    assert clock.now_s() == 1.0 + 2.0 + 3.0 + 3.0


def test_retry_returns_the_first_result_and_raises_the_last_error_in_time(clock: VirtualClock) -> None:
    def fails() -> None:
        raise ConnectionError(clock.now_s())

    with pytest.raises(ConnectionError, match="10"):
        retry(clock, 5.0, fails, (ConnectionError,), within_s=12.0)


def test_retry_does_not_repeat_another_error(clock: VirtualClock) -> None:
    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  ours, two lines above
        retry(clock, 5.0, fails, (ConnectionError,), within_s=12.0)
    assert clock.now_s() == 0.0


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_step_of_the_wall_clock_changes_no_patience(clock: VirtualClock, by_s: int) -> None:
    stepped = SteppedMidway(clock, by_s, at_sleep=1)
    calls: list[float] = []

    assert poll(stepped, 5.0, lambda: calls.append(clock.monotonic()), within_s=12.0) is None
    assert calls == [0.0, 5.0, 10.0, 15.0]


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_step_of_the_wall_clock_changes_no_retry(clock: VirtualClock, by_s: int) -> None:
    def fails() -> None:
        raise ConnectionError(clock.monotonic())

    with pytest.raises(ConnectionError, match="10"):
        retry(SteppedMidway(clock, by_s, at_sleep=1), 5.0, fails, (ConnectionError,), within_s=12.0)
