"""A slow-down between two nights is told from noise by its interval, and the busy processes have the names they say."""

import subprocess

import pytest

from benchmarks.first_nights import BUSY, busy_processes
from benchmarks.told_apart import slow_down

QUIET = {"one": [1.0, 1.01, 0.99], "four": [2.0, 2.02, 1.98]}


def test_a_slow_down_beyond_noise_has_an_interval_above_zero() -> None:
    slower = {name: [1.15 * value for value in values] for name, values in QUIET.items()}

    found = slow_down(QUIET, slower)

    assert found is not None
    assert found.share == pytest.approx(0.15)
    assert 0.1 < found.low < found.high < 0.2


def test_noise_is_no_slow_down_and_one_repeat_says_nothing() -> None:
    wide = {"one": [1.0, 1.6, 0.8]}

    found = slow_down(wide, {"one": [1.15, 0.9, 1.7]})

    assert found is not None
    assert found.low < 0 < found.high
    assert slow_down({"one": [1.0]}, {"one": [1.0, 2.0]}) is None


def test_the_busy_processes_run_under_their_names_and_are_ended() -> None:
    with busy_processes():
        listed = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout.split()
        assert set(BUSY) <= set(listed)
    listed = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout.split()
    assert not set(BUSY) & set(listed)
