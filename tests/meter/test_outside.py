"""What prevents a run is one sentence before anything is sent; what was measured is kept."""

import errno
import json
import multiprocessing
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from meter.board import Board
from meter.clock import Offset
from meter.connection import Address, Endpoint, why_not
from meter.drive import Course
from meter.errors import OutsideWorldError
from meter.limits import check_disk, check_ports, raise_open_files
from meter.plan import parse_plan
from meter.record import Part
from meter.report import report_bytes, write_report
from tests.meter.conftest import RunMeter, StartTruth, make_plan


@contextmanager
def serving(answer: bytes) -> Iterator[str]:
    """A server that answers its first connection so."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def once() -> None:
            connection, _peer = server.accept()
            with closing(connection):
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=once)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http("404 Not Found", "nothing here"), "does not speak the OpenAI API: GET /v1/models returned HTTP 404"),
        (http("200 OK", "<html>welcome</html>"), "returned HTTP 200: <html>welcome</html>"),
        (http("200 OK", '{"data": [{"id": "large"}]}'), "does not serve 'small'; it serves large"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
    ],
)
def test_a_server_of_another_kind_is_refused_in_one_sentence(answer: bytes, words: str, run_meter: RunMeter) -> None:
    with serving(answer) as url:
        report = run_meter(url)

    assert report.exit_code == 3
    assert words in report.stderr
    assert report.stderr.count("\n") == 1
    assert list(report.folder.iterdir()) == []


def test_a_server_that_does_not_answer_is_named_with_its_address(run_meter: RunMeter) -> None:
    report = run_meter("http://127.0.0.1:1")

    assert report.exit_code == 3
    assert "http://127.0.0.1:1 does not answer" in report.stderr


def test_more_streams_than_local_ports_are_refused_with_the_range(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("1000\t1009\n")

    check_ports(10, tmp_path / "range")
    with pytest.raises(OutsideWorldError, match=r"11 connections .* has 10 \(1000 to 1009"):
        check_ports(11, tmp_path / "range")


def test_an_unknown_port_range_refuses_nothing(tmp_path: Path) -> None:
    check_ports(10**9, tmp_path / "missing")


def test_a_connection_without_a_local_port_says_so() -> None:
    endpoint = Endpoint("http://127.0.0.1:9", (Address(socket.AF_INET, ("127.0.0.1", 9)),), is_stamped=False)

    assert why_not(endpoint, OSError(errno.EADDRNOTAVAIL, "x")).startswith("No local port is free")
    assert "does not answer" in why_not(endpoint, OSError(errno.ECONNREFUSED, "x"))


def in_a_process(code: Callable[[], None]) -> int:
    """Run this in a child process with limits of its own; return the exit code."""
    # Not forked: what ran before in this process may have left threads, and locks that they hold.
    child = multiprocessing.get_context("spawn").Process(target=exit_by, args=[code])
    child.start()
    child.join(300)
    assert child.exitcode is not None
    return child.exitcode


def exit_by(code: Callable[[], None]) -> None:
    try:
        code()
    except OutsideWorldError as error:
        sys.exit(3 if "ulimit -Hn" in str(error) or "25 of 100 requests were kept" in str(error) else 4)


def low_limit(streams: int, *, needs_all: bool) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))
    raise_open_files(streams, needs_all=needs_all)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 200


def test_too_few_open_files_are_refused_by_the_name_of_the_limit() -> None:
    assert in_a_process(partial(low_limit, 136, needs_all=True)) == 0
    assert in_a_process(partial(low_limit, 137, needs_all=True)) == 3


def test_an_open_loop_takes_as_many_files_as_there_are() -> None:
    assert in_a_process(partial(low_limit, 10_000, needs_all=False)) == 0


def test_a_report_that_may_not_fit_is_refused_before_the_load(tmp_path: Path) -> None:
    with pytest.raises(OutsideWorldError, match=r"may need .* MB; the disk of .* has"):
        check_disk(tmp_path, 1 << 62)


def test_the_estimated_report_size_is_above_the_real_one(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url)

    taken = sum(path.stat().st_size for path in report.folder.iterdir())
    assert taken < report_bytes(parse_plan(json.dumps(report.summary["plan"])))


def part_of(count: int) -> Part:
    part = Part()
    for index in range(count):
        part.rows.append({"index": index, "event_first": index, "event_count": 1, "filler": "x" * 1000})
        part.events.append(index, index, 1, 0, 10, 1)
    return part


def write_into_a_small_file_limit(folder: Path) -> None:
    """Take a limit on file sizes for a disk that is full: both fail in the middle of a write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    write_report(folder, part_of(100), lambda part: {"issued": len(part.rows), "complete": True})


def test_a_disk_that_fills_up_keeps_as_many_requests_as_fit(tmp_path: Path) -> None:
    code = in_a_process(partial(write_into_a_small_file_limit, tmp_path))

    summary = json.loads((tmp_path / "meter.json").read_text())
    assert code == 3
    assert (summary["issued"], summary["complete"]) == (25, False)
    assert "the report cannot be written" in summary["ended_by"]
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 25
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.bin", "meter.json", "requests.jsonl"]


def course(step_ns: int, stopped_by: int = 0) -> Course:
    board = Board.open(1)
    board.stop(stopped_by)
    plan = parse_plan(json.dumps(make_plan(url="http://127.0.0.1:1")))
    return Course(plan, board, Offset(10**18, 100), Offset(10**18 + step_ns, 100))


def test_a_wall_clock_that_was_set_marks_the_run_incomplete_with_the_step() -> None:
    assert course(200).ended_by is None
    assert "the wall clock was set by +5.000 ms" in (course(5_000_000).ended_by or "")
    assert course(5_000_000, stopped_by=15).ended_by == "stopped by SIGTERM"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps packets for us")
def test_without_kernel_stamps_there_are_none_and_nothing_else_is_missing(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    report = run_meter(truth.url, kernel_stamps=False)

    assert report.outcomes == ["ok"] * 6
    assert report.summary["client"]["kernel_stamp_share"] == 0.0
    assert {row["event_kernel_ns"] for row in report.rows} == {None}
    assert {row["lag_p99_ns"] for row in report.rows} == {None}
    assert all(len(row["event_at_ns"]) == 8 for row in report.rows)


def test_a_worker_whose_parent_was_killed_exits(start_truth: StartTruth, start_meter: Any) -> None:
    truth = start_truth(ttft_ms=100_000)
    process: subprocess.Popen[str] = start_meter(truth.url, load={"kind": "closed", "concurrency": 1}, workers=1)
    while '"received"' not in truth.log_path.read_text():
        time.sleep(0.05)  # the load is not on yet
    (worker,) = psutil.Process(process.pid).children()

    process.kill()
    process.wait()

    assert psutil.wait_procs([worker], timeout=300)[1] == []


def test_a_free_slot_is_taken_at_once(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 2}, request_count=8)

    assert [row["slot_free_ns"] is None for row in report.rows] == [True] * 2 + [False] * 6
    for row in report.rows[2:]:
        assert row["slot_free_ns"] <= row["send_start_ns"]
        assert row["slot_free_ns"] in {other["done_at_ns"] for other in report.rows}
    assert report.summary["client"]["send_gap_p99_ms"] >= 0
