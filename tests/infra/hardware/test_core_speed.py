"""The speed of the cores is that of a fixed piece of work in CPU time; too few samples have none."""

import os
import threading
import time
from pathlib import Path

import pytest

from infra.hardware.core_speed import FEWEST, NICE, CoreSpeed, work_s

DEADLINE_S = 120.0  # on a busy host the work waits for its core


def _thread_nices() -> list[int]:
    tasks = [int(one.name) for one in Path("/proc/self/task").iterdir()]
    return [os.getpriority(os.PRIO_PROCESS, task) for task in tasks]


def test_the_work_is_sampled_by_a_thread_that_gives_way_and_ends_with_its_block() -> None:
    gives_way = min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE)
    ends_at = time.monotonic() + DEADLINE_S
    with CoreSpeed() as speed:
        while len(speed.samples_s) < FEWEST and time.monotonic() < ends_at:
            time.sleep(0.05)
        assert gives_way in _thread_nices()
    count = len(speed.samples_s)

    assert speed.median_s is not None, speed.why_unknown
    assert speed.slowest_s is not None
    assert 0 < min(speed.samples_s) <= speed.median_s <= speed.slowest_s
    assert "core-speed" not in {thread.name for thread in threading.enumerate()}
    assert len(speed.samples_s) == count


def test_the_work_is_cpu_time_alone() -> None:
    began_s = time.thread_time()
    took_s = work_s()

    assert 0 < took_s <= (time.thread_time() - began_s) / 2, "the fastest of three is at most half of all"


@pytest.mark.parametrize(
    ("samples", "median_s", "slowest_s"),
    [([1.0, 3.0, 1.5, 1.0, 1.0], 1.0, 3.0), ([1.0] * (FEWEST - 1), None, None), ([], None, None)],
)
def test_too_few_samples_have_no_speed_and_a_reason(
    samples: list[float], median_s: float | None, slowest_s: float | None
) -> None:
    speed = CoreSpeed(samples)

    assert (speed.median_s, speed.slowest_s) == (median_s, slowest_s)
    assert (speed.why_unknown is None) == (median_s is not None)
