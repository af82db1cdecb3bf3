"""One time for several processes."""

import multiprocessing
from datetime import UTC
from pathlib import Path

from tests.emulators.virtual_clock import EPOCH_S, VirtualClock


def sleep_often(clock: VirtualClock) -> None:
    for _ in range(500):
        clock.sleep(1.0)


def jump_often(clock: VirtualClock) -> None:
    for _ in range(20_000):
        clock.jump(1.0)
        clock.jump(-1.0)


def test_sleeping_moves_the_clock_and_nothing_else_does(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")

    clock.sleep(90)

    assert clock.now().timestamp() == EPOCH_S + 90
    assert clock.now().tzinfo is UTC


def test_the_clock_is_one_for_all_processes_and_no_second_is_lost(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=sleep_often, args=(clock,)) for _ in range(2)]

    for child in children:
        child.start()
    sleep_often(clock)
    for child in children:
        child.join()

    assert clock.now_s() == EPOCH_S + 1500


def test_no_process_reads_a_time_that_another_has_half_written(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    child = multiprocessing.get_context("spawn").Process(target=jump_often, args=(clock,))

    child.start()
    seen = {clock.now_s()}
    while child.is_alive():
        seen.update(clock.now_s() for _ in range(1000))

    assert child.exitcode == 0
    assert seen <= {EPOCH_S, EPOCH_S + 1}
