"""The truth server's log, and the error of a client against it, on logs made by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.client_error.calibration import LoadCell, MeterReports, Point, measure_error
from bench.client_error.truth import EVENT, REQUEST, ClientTimes, Truth, mean_live, nearest_rank, read_truth, select
from bench.errors import UnreadableResultError

MS = 1_000_000
CELL = LoadCell(streams=2, ttft_ms=10.0, itl_ms=5.0, output_tokens=4, request_count=4)
CLIENT = {"cpu_s": 0.002, "wall_s": 0.1, "lag_p99_ms": 0.1, "kernel_stamp_share": 1.0}


def log_of(*, requests: int = 4, tokens: int = 4, late_ns: int = 7) -> bytes:
    """Two slots, one request after another on each, as a server with TTFT 10 ms and ITL 5 ms writes them."""
    head = np.zeros(requests, dtype=REQUEST)
    events = []
    for index in range(requests):
        arrived = index // 2 * 25 * MS
        head[index] = (f"r-{index}".encode(), arrived, 64, tokens)
        events += [(index, 1, due := arrived + (10 + 5 * at) * MS, due + late_ns) for at in range(tokens)]
    body = np.array(sorted(events, key=lambda event: event[3]), dtype=EVENT)
    said = {"requests": requests, "events": len(body), "cpu_s": 0.01}
    return json.dumps(said).encode() + b"\n" + head.tobytes() + body.tobytes()


def late_client(truth: Truth, ttft_ns: int, gap_ns: int) -> ClientTimes:
    """A client that sees every first token so much later, and every gap so much longer."""
    place = np.arange(len(truth.written_ns)) - np.repeat(truth.at[:-1], truth.count)
    return ClientTimes(truth.ids, truth.arrived_ns, truth.at, truth.written_ns + ttft_ns + place * gap_ns)


def point_of(truth: Truth, seen: ClientTimes, kernel: ClientTimes | None = None) -> Point:
    return measure_error(CELL, truth, MeterReports(seen, kernel, ok=len(seen.ids), client=CLIENT))


def test_a_log_gives_each_request_its_own_writes_in_their_order() -> None:
    truth = read_truth(log_of())

    assert truth.ids == ("r-0", "r-1", "r-2", "r-3")
    assert truth.count.tolist() == [4, 4, 4, 4]
    assert (truth.ended_ns - truth.arrived_ns).tolist() == [25 * MS + 7] * 4
    assert set(truth.late_ns.tolist()) == {7}


@pytest.mark.parametrize("wrong", [log_of()[:-1], log_of() + b"x", b"{}\n" + log_of(), b"", b"\xff\n"])
def test_what_is_no_whole_log_is_refused(wrong: bytes) -> None:
    with pytest.raises(UnreadableResultError, match="truth server's log"):
        read_truth(wrong)


def test_a_perfect_client_has_no_error() -> None:
    truth = read_truth(log_of())

    point = point_of(truth, select(truth, truth.ids))

    errors = [value for name, value in vars(point).items() if "error" in name and value is not None]
    assert errors == [0.0] * 6
    assert point.live_streams == pytest.approx(2.0)
    assert (point.itl_p99_error_kernel_ms, point.ttft_mean_error_kernel_ms) == (None, None)


@given(st.integers(-3 * MS, 50 * MS), st.integers(-2 * MS, 50 * MS))
def test_a_late_client_has_just_the_error_it_was_given(ttft_ns: int, gap_ns: int) -> None:
    truth = read_truth(log_of())

    point = point_of(truth, select(truth, truth.ids), kernel=late_client(truth, ttft_ns, gap_ns))
    by_user = point_of(truth, late_client(truth, ttft_ns, gap_ns))

    assert point.ttft_mean_error_kernel_ms == by_user.ttft_mean_error_ms == pytest.approx(ttft_ns / MS)
    assert by_user.ttft_p99_error_ms == pytest.approx(ttft_ns / MS)
    found = (point.itl_p99_error_kernel_ms, by_user.itl_p50_error_ms, by_user.itl_p99_error_ms, point.itl_p99_error_ms)
    assert found == pytest.approx((gap_ns / MS, gap_ns / MS, gap_ns / MS, 0.0))


def test_answers_that_take_longer_than_they_were_due_to_are_load_that_was_not_offered() -> None:
    truth = read_truth(log_of(late_ns=MS))

    point = point_of(truth, select(truth, truth.ids))

    assert point.load_share == pytest.approx(point.live_streams / CELL.streams * 25 / 26)
    assert point_of(read_truth(log_of(late_ns=0)), select(truth, truth.ids)).load_share == pytest.approx(1.0)


def test_gaps_never_span_two_requests() -> None:
    seen = ClientTimes(
        ("a", "b", "c"), np.zeros(3, dtype=np.int64), np.array([0, 2, 2, 4]), np.array([1, 3, 100, 107]) * MS
    )

    assert seen.gaps_ms.tolist() == [2.0, 7.0]
    assert seen.ttft_ms.tolist() == [1.0, 100.0]


def test_a_request_the_server_never_saw_is_no_truth() -> None:
    with pytest.raises(KeyError, match="r-9"):
        select(read_truth(log_of()), ("r-0", "r-9"))


def test_what_is_live_is_weighted_by_time() -> None:
    truth = read_truth(log_of(requests=2))

    assert mean_live(truth, 0, 25 * MS) == pytest.approx(2.0)
    assert mean_live(truth, 0, 50 * MS) == pytest.approx(1.0, rel=1e-6)


def test_the_nearest_rank_is_a_value_that_was_there() -> None:
    values = np.arange(1.0, 101.0)

    assert [nearest_rank(values, share) for share in (0.5, 0.99, 0.999, 1.0)] == [50.0, 99.0, 100.0, 100.0]
    assert np.isnan(nearest_rank(np.empty(0), 0.5))
