"""Each way a request can end has one name, and the server's own words beside it."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.meter.conftest import RunMeter, StartTruth, answer_models

HUGE_PROMPTS = {"kind": "random", "input_tokens": 2_000_000, "token_low": 1000, "token_high": 9999, "seed": 1}
RESET = struct.pack("ii", 1, 0)  # close() sends a reset and keeps nothing


@pytest.mark.parametrize(
    ("fault", "outcome", "words"),
    [
        ("http500:3", "http", "HTTP 500: {"),
        ("sse_error:3", "sse_error", "EngineCore encountered an issue"),
        ("cut:3", "truncated", "HTTP 200"),
        ("no_done:3", "truncated", "[DONE]"),
        ("no_usage:3", "parse", "usage"),
        ("garbage:3", "parse", "not json"),
        ("short:3", "short_output", "4 tokens of 8"),
    ],
)
def test_every_third_request_fails_by_its_class(
    start_truth: StartTruth, run_meter: RunMeter, fault: str, outcome: str, words: str
) -> None:
    truth = start_truth(fault)

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 1})

    assert report.outcomes == ["ok", "ok", outcome, "ok", "ok", outcome]
    assert words in report.rows[2]["error"]
    assert report.summary["failed_by_class"] == {outcome: 2}
    assert report.summary["ok"] == 4


def test_a_stalled_stream_times_out_and_keeps_what_came(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("stall:3")

    report = run_meter(truth.url, timeout_s=10.0, request_count=3)

    assert sorted(report.outcomes) == ["ok", "ok", "timeout"]
    stalled = next(row for row in report.rows if row["outcome"] == "timeout")
    assert stalled["event_tokens"] == [1, 1, 1, 1]
    assert stalled["output_tokens_counted"] is None
    assert stalled["done_at_ns"] - stalled["send_start_ns"] >= 10_000_000_000


def test_a_kept_connection_that_drops_its_second_request_is_not_retried(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth("drop_reuse")

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 1}, request_count=4)

    assert report.outcomes == ["ok", "dropped_on_reuse", "ok", "dropped_on_reuse"]
    assert [row["reused"] for row in report.rows] == [False, True, False, True]
    assert len(truth.log("received")) == 2


def test_a_server_that_dies_leaves_one_cut_answer_and_then_refused_connections(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth("die_after:3")

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 1}, request_count=5)

    assert report.outcomes == ["ok", "ok", "truncated", "connect", "connect"]
    assert report.rows[3]["send_start_ns"] is None
    assert report.summary["complete"] is True


def test_an_open_loop_fails_by_connect_when_the_server_is_gone(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("die_after:1")

    report = run_meter(truth.url, load={"kind": "constant", "rate_per_s": 20.0}, request_count=5)

    assert set(report.outcomes) <= {"truncated", "connect"}
    assert report.outcomes[-1] == "connect"
    assert len(report.rows) == 5


def test_a_prompt_that_is_too_long_is_refused_by_http(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("", "--max-model-len", "12")

    report = run_meter(truth.url, request_count=1)

    assert report.outcomes == ["http"]
    assert report.rows[0]["http_status"] == 400
    assert "maximum context length is 12 tokens" in report.rows[0]["error"]


@pytest.fixture
def resetting_server() -> Iterator[str]:
    """A server that takes one byte of the first request and resets the connection."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def reset_once() -> None:
            answer_models(server)
            connection, _peer = server.accept()
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()

        thread = threading.Thread(target=reset_once)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_a_request_larger_than_the_socket_takes_goes_out_in_parts(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, prompts=HUGE_PROMPTS, request_count=1)

    # The truth server reads a body to its end before it refuses the prompt.
    assert report.outcomes == ["http"]
    assert "value=2000000" in report.rows[0]["error"]
    assert report.rows[0]["send_start_ns"] < report.rows[0]["send_end_ns"] <= report.rows[0]["headers_at_ns"]


def test_a_reset_while_the_request_is_on_its_way_is_a_send_failure(resetting_server: str, run_meter: RunMeter) -> None:
    report = run_meter(resetting_server, prompts=HUGE_PROMPTS, request_count=1)

    assert report.outcomes == ["send"]
    assert report.rows[0]["send_end_ns"] is None
    assert report.rows[0]["first_token_at_ns"] is None
