"""Several processes share one load, and what they bring is put together exactly."""

import os
import signal
from collections.abc import Callable
from itertools import pairwise

import pytest

from meter.board import Board
from meter.crew import own_core
from meter.errors import OutsideWorldError, StoppedError
from meter.forks import PartFailedError, fork_each, gather
from tests.meter.conftest import RunMeter, StartTruth


def test_workers_share_the_requests_and_lose_none(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(
        truth.url, workers=3, load={"kind": "closed", "concurrency": 5}, request_count=20, warmup_count=5
    )

    assert [row["index"] for row in report.rows] == list(range(25))
    assert [row["worker"] for row in report.rows] == [index % 3 for index in range(25)]
    assert report.outcomes == ["ok"] * 25
    assert {entry["request_id"] for entry in truth.log("received")} == {row["request_id"] for row in report.rows}
    assert [row["event_first"] for row in report.requests] == [
        sum(row["event_count"] for row in report.requests[:place]) for place in range(25)
    ]


def test_workers_together_keep_exactly_the_requested_number_in_flight(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth(ttft_ms=20)

    run_meter(truth.url, workers=3, load={"kind": "closed", "concurrency": 5}, request_count=20, warmup_count=5)

    assert max(entry["running"] for entry in truth.log("received")) == 5


def test_workers_keep_one_schedule_in_an_open_loop(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, workers=2, load={"kind": "constant", "rate_per_s": 50.0})

    intended = [row["intended_at_ns"] for row in report.rows]
    assert [later - at for at, later in pairwise(intended)] == [20_000_000] * 5
    assert {row["worker"] for row in report.rows} == {0, 1}


def test_nothing_is_sent_before_the_common_origin(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, workers=2)

    assert min(row["send_start_ns"] for row in report.rows) >= 0
    assert min(row["connect_start_ns"] for row in report.rows if not row["reused"]) < 0


def test_the_health_of_each_worker_is_kept(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, workers=2)

    workers = report.summary["workers"]
    assert [worker["worker"] for worker in workers] == [0, 1]
    assert report.summary["client"]["cpu_s"] == pytest.approx(sum(worker["cpu_s"] for worker in workers))
    assert all(worker["turns"] > 0 for worker in workers)
    if own_core(os.sched_getaffinity(0), 0, workers=2) is not None:
        assert len({tuple(worker["cores"]) for worker in workers}) == 2
        assert all(len(worker["cores"]) == 1 for worker in workers)


@pytest.mark.parametrize(
    ("cores", "workers", "own"),
    [({0, 1}, 1, [None]), ({0, 1}, 2, [0, 1]), ({4, 5, 6, 7}, 1, [7]), ({4, 5, 6, 7}, 2, [None, None]), ({3}, 1, [3])],
)
def test_a_worker_has_a_core_of_its_own_where_a_server_needs_no_more_than_the_others(
    cores: set[int], workers: int, own: list[int | None]
) -> None:
    assert [own_core(cores, worker, workers) for worker in range(workers)] == own


def test_a_forked_part_sends_back_its_value() -> None:
    assert gather(fork_each(3, lambda number: number * 10)) == [0, 10, 20]


def test_a_meter_error_in_a_child_comes_back_as_a_value() -> None:
    def fail(number: int) -> int:
        if number == 1:
            raise OutsideWorldError("no road")
        return number

    first, second = gather(fork_each(2, fail))

    assert first == 0
    assert (type(second), str(second), second.exit_code) == (OutsideWorldError, "no road", 3)


def die_by_signal(_number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def break_down(_number: int) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("task", [die_by_signal, break_down])
def test_a_worker_that_exits_early_is_an_error_and_leaves_no_process(task: Callable[[int], None]) -> None:
    forks = fork_each(2, task)

    with pytest.raises(PartFailedError, match="exited before it sent its whole result"):
        gather(forks)

    for fork in forks:
        with pytest.raises(ProcessLookupError):
            os.kill(fork.pid, 0)


def test_the_board_keeps_the_first_reason_to_stop_and_adds_up_what_has_ended() -> None:
    board = Board.open(2)

    board.stop(signal.SIGTERM)
    board.stop(signal.SIGINT)
    board.ready(1)
    board.report_ended(0, 4)
    board.report_ended(1, 5)

    assert (board.stopped_by, board.ended, board.is_ready) == (signal.SIGTERM, 9, False)
    board.ready(0)
    assert board.is_ready


def test_stopped_before_anything_was_sent_has_the_signals_exit_code() -> None:
    assert StoppedError(signal.SIGTERM).exit_code == 143
