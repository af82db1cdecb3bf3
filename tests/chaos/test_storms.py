"""A few random nights in which everything goes wrong; `make chaos NIGHTS=1000` runs many."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.storm import blow, forecast


@pytest.mark.parametrize("seed", range(10))
def test_a_random_night_leaks_nothing(seed: int) -> None:
    assert blow(seed) is None, forecast(seed)


def test_a_seed_always_means_the_same_night() -> None:
    assert forecast(7) == forecast(7)
    assert forecast(7) != forecast(8)


def test_a_leak_is_told_with_its_seed_and_exit_code_1() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "1", "--seed", "-1", "--workers", "1"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 1
    assert "seed -1 LEAKS" in ended.stdout
    assert "NIGHTS=1 SEED=-1" in ended.stdout
