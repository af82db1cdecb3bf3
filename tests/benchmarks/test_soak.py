"""What a soak counts against itself: a night without an end, whatever is left, and memory that grows."""

import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.soak_page import UNACCOUNTED, Soaked, growth, page

FILLING = (100.0, 110.0, 120.0, 130.0, 140.0)
GROWING = (*FILLING, *range(150, 168, 2))  # eight nights that count, of 2 MiB each
GOOD = Soaked(
    planned=3,
    minutes=2.4,
    seed=1,
    ended={"Completed": 2, "Crashed": 1},
    kills={"worker and night": 1},
    stopped={},
    left=(),
    inconsistent=(),
    loaded=2,
    memory={"server": [(*FILLING, *[220.0] * 11)], "worker": [(90.0,), (91.0,)]},
)


def test_memory_counts_once_the_allocator_of_a_process_is_filled() -> None:
    lives = [GROWING, (*FILLING, 150.0, 150.0, 153.0)]

    assert growth(lives) == pytest.approx((16 + 3) / (8 + 2))
    assert growth([GROWING, (*FILLING, 150.0, 150.0)]) is None, "nine nights"


@pytest.mark.parametrize(
    "bad",
    [
        replace(GOOD, ended={"Completed": 2, UNACCOUNTED: 1}),
        replace(GOOD, stopped={"worker": 1}),
        replace(GOOD, left=("lease 1",)),
        replace(GOOD, inconsistent=("night n: 1 rows of 1 runs, 2 were planned",)),
        replace(GOOD, memory={"server": [GROWING, GROWING]}),
    ],
)
def test_a_soak_is_good_only_if_all_of_it_is(bad: Soaked) -> None:
    assert GOOD.is_good
    assert not bad.is_good


def test_the_page_has_every_count() -> None:
    text = page(replace(GOOD, left=("lease 1",)))

    for row in ("| 2 Completed, 1 Crashed |", "left | 1; lease 1 |", "| killed | 1 worker and night |"):
        assert row in text
    assert "| memory of the server | +0.00 MiB a night, at most 220 MiB, over 1 starts |" in text
    assert "| memory of the worker | its growth is not known, at most 91 MiB, over 2 starts |" in text


@pytest.mark.matrix
@pytest.mark.prefect
@pytest.mark.timeout(1800)
def test_three_nights_and_a_killed_worker_leave_nothing() -> None:
    argv = [sys.executable, "-m", "benchmarks.soak", "--nights", "3"]

    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "| killed | 1 worker |" in done.stdout
