"""Which loads a night calibrates, which calibrated points count, and which runs lie inside."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.client_error.calibration import Point, doubts
from bench.client_error.envelope import (
    MOST_CELLS,
    STREAM_TOK_PER_S,
    calibrated_share,
    demand_of,
    most_streams,
    night_cells,
)
from bench.record import CalibratedLoad
from bench.server_facts import EndpointFacts
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from tests.bench.builders import CALIBRATION, CLOSED, OPEN, Measured, closed_loop, healthy, open_loop, with_workload

GOOD = Point(
    streams=100,
    ttft_ms=20.0,
    itl_ms=4.0,
    stream_tok_per_s=250.0,
    workers=1,
    is_lock_step=False,
    requests=200,
    ok=200,
    ttft_mean_error_ms=0.3,
    ttft_p99_error_ms=0.5,
    itl_p50_error_ms=0.0,
    itl_p99_error_ms=0.4,
    itl_p999_error_ms=1.0,
    ttft_mean_error_kernel_ms=0.1,
    itl_p99_error_kernel_ms=0.001,
    itl_p999_error_kernel_ms=0.002,
    live_streams=99.5,
    load_share=0.995,
    throughput_error_share=0.0,
    cpu_us_per_token=10.0,
    core_share=0.3,
    lag_p99_ms=0.4,
    kernel_stamp_share=1.0,
    merged_late_share=0.0,
    server_late_p99_ms=0.2,
    server_core_share=0.3,
)
STAMPLESS = replace(GOOD, itl_p99_error_kernel_ms=None, ttft_mean_error_kernel_ms=None, itl_p99_error_ms=0.2)
STEADY = healthy(closed_loop(CLOSED, [1.0] * 40), CLOSED)  # 4 streams, 63 gaps in 0.7 s: 90 tokens a second each


def closed(*streams: int, workers: int = 1) -> list[Scenario]:
    works = [
        Workload(isl=16, osl=8, request_count=10, concurrency=count, workers=min(workers, count)) for count in streams
    ]
    return [with_workload(work) for work in works]


def share_with(run: Measured, *loads: tuple[int, float, int], **facts: str) -> float | None:
    """The calibrated share of a run whose client was calibrated for these streams, rates and workers."""
    made = tuple(CalibratedLoad(streams=n, stream_tok_per_s=rate, workers=workers) for n, rate, workers in loads)
    calibration = CALIBRATION.model_copy(update={"loads": made, **facts})
    return calibrated_share(run.record.model_copy(update={"calibration": calibration}), run.report)


@pytest.mark.parametrize("point", [GOOD, STAMPLESS], ids=["kernel-stamps", "our-own"])
def test_a_point_within_all_bounds_passes(point: Point) -> None:
    assert list(doubts(point)) == []


@pytest.mark.parametrize(
    ("point", "changes", "said"),
    [
        (GOOD, {"itl_p99_error_kernel_ms": 0.051}, "p99 ITL is +0.051 ms off, more than 0.05"),
        (GOOD, {"itl_p99_error_kernel_ms": float("nan")}, "p99 ITL is"),
        (STAMPLESS, {"itl_p99_error_ms": -0.31}, "p99 ITL is -0.310 ms off, more than 0.3"),
        (GOOD, {"ttft_mean_error_kernel_ms": 1.1}, "mean TTFT is +1.10 ms off"),
        (STAMPLESS, {"ttft_mean_error_ms": 1.1}, "mean TTFT is +1.10 ms off"),
        (GOOD, {"live_streams": 98.9}, "98.9 of 100 streams were in flight"),
        (GOOD, {"load_share": 0.98}, "98.0% of the load was offered"),
        (GOOD, {"core_share": 0.71}, "busiest core was 71% busy"),
        (GOOD, {"merged_late_share": 0.006}, "read several tokens at once"),
        (GOOD, {"server_late_p99_ms": 4.1}, "the server itself was 4.10 ms late"),
        (GOOD, {"ok": 199}, "199 of 200 requests completed"),
    ],
)
def test_each_bound_is_seen_to_fail_a_point(point: Point, changes: dict[str, Any], said: str) -> None:
    (doubt,) = doubts(replace(point, **changes))

    assert said in doubt


def test_what_a_run_asked_of_its_client_is_its_streams_and_the_rate_each_of_them_had() -> None:
    demand = demand_of(STEADY.record, STEADY.report)

    assert (demand.streams, demand.workers) == (4, 1)
    assert demand.stream_tok_per_s == pytest.approx(63 / 0.7)


def test_an_open_loop_had_as_many_streams_as_were_once_in_flight() -> None:
    run = healthy(open_loop(OPEN, [1.0] * 40, [0.3] * 40), OPEN)

    assert demand_of(run.record, run.report).streams == 4


def test_answers_of_one_token_ask_for_no_rate() -> None:
    work = CLOSED.model_copy(update={"osl": 1})
    run = healthy(closed_loop(work, [1.0] * 40), work)

    assert share_with(run, (4, 50.0, 1)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("loads", "share"),
    [
        ([(4, 90.1, 1)], 1.0),
        ([(3, 500.0, 1)], 0.75),
        ([(100, 45.0, 1)], 0.5),
        ([(3, 500.0, 1), (100, 45.0, 1)], 0.75),
        ([(8, 500.0, 2)], 0.0),
        ([], 0.0),
    ],
    ids=["inside", "too-few-streams", "too-slow", "no-one-point-has-both", "other-workers", "nothing-passed"],
)
def test_a_run_is_inside_if_one_passing_point_has_its_streams_and_its_rate(
    loads: list[tuple[int, float, int]], share: float
) -> None:
    assert share_with(STEADY, *loads) == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize("facts", [{"hostname": "host-2"}, {"meter_version": "0.2.0"}])
def test_another_host_or_another_client_is_not_calibrated_by_it(facts: dict[str, str]) -> None:
    assert share_with(STEADY, (4, 100.0, 1), **facts) == 0.0


def test_a_load_through_tls_is_calibrated_through_tls() -> None:
    found = EndpointFacts(
        url="https://host:443", addresses=("10.0.0.1:443",), forms=("chat",), takes=(), keeps_connections=True
    )
    assert STEADY.record.server is not None
    server = STEADY.record.server.model_copy(update={"endpoint": found})
    run = replace(STEADY, record=STEADY.record.model_copy(update={"server": server}))

    assert [cell.is_tls for cell in night_cells(closed(4), 60.0, is_tls=True)] == [True]
    assert share_with(STEADY, (4, 100.0, 1)) == pytest.approx(1.0, rel=0.2)
    assert share_with(run, (4, 100.0, 1)) == 0.0


def test_without_a_calibration_nothing_can_be_said() -> None:
    bare = STEADY.record.model_copy(update={"calibration": None})

    assert calibrated_share(bare, STEADY.report) is None


def test_few_streams_are_calibrated_once_at_the_rate_of_the_fastest_engine() -> None:
    (cell,) = night_cells(closed(1, 4, 16), 60.0)

    assert (cell.streams, cell.stream_tok_per_s) == (16, STREAM_TOK_PER_S)
    assert (cell.itl_ms, cell.output_tokens) == (2.5, 80)  # a stream lasts 200 ms


def test_many_streams_are_calibrated_at_what_the_client_can_take_in_all() -> None:
    cells = night_cells(closed(1, 1000), 60.0)

    assert [(cell.streams, cell.stream_tok_per_s) for cell in cells] == [(125, 400.0), (1000, 50.0)]


def test_more_workers_are_calibrated_for_more() -> None:
    (*_, cell) = night_cells(closed(1000, workers=4), 60.0)

    assert (cell.workers, cell.stream_tok_per_s) == (4, 200.0)


@given(st.lists(st.integers(8, 5000), min_size=1, max_size=12), st.integers(1, 8))
def test_every_number_of_streams_is_covered_by_a_few_cells(streams: list[int], workers: int) -> None:
    cells = night_cells(closed(*streams, workers=workers), 60.0)

    rates = [cell.stream_tok_per_s for cell in cells]
    assert 1 <= len(cells) <= MOST_CELLS
    assert max(cell.streams for cell in cells) == max(streams)
    assert {cell.workers for cell in cells} == {workers}
    assert rates == sorted(rates, reverse=True)


def test_each_number_of_workers_is_calibrated_by_itself() -> None:
    cells = night_cells([*closed(4), *closed(8, workers=2)], 60.0)

    assert [(cell.streams, cell.workers) for cell in cells] == [(4, 1), (8, 2)]


def test_an_open_loop_of_few_requests_still_has_a_stream_for_each_worker() -> None:
    work = OPEN.model_copy(update={"workers": 4, "request_count": 2, "warmup_count": 0})

    (cell,) = night_cells([with_workload(work)], 60.0)

    assert (cell.streams, cell.workers) == (4, 4)


def test_a_night_without_scenarios_has_nothing_to_calibrate() -> None:
    assert night_cells([], 60.0) == []


@pytest.mark.parametrize(
    ("rate", "count", "timeout_s", "most"), [(10.0, 500, 5.0, 100), (10.0, 50, 600.0, 52), (0.1, 500, 1.0, 1)]
)
def test_an_open_loop_has_no_more_streams_than_arrive_within_a_timeout(
    rate: float, count: int, timeout_s: float, most: int
) -> None:
    work = OPEN.model_copy(update={"request_rate_per_s": rate, "request_count": count})

    assert most_streams(work, timeout_s) == most


def test_a_trace_may_send_all_its_requests_at_once() -> None:
    work = Workload(isl=16, osl=8, request_count=30, warmup_count=2, arrivals="trace", trace="arrivals.txt")

    assert most_streams(work, 1.0) == 32


def test_a_run_of_which_nothing_was_sent_had_no_streams() -> None:
    run = healthy(open_loop(OPEN, [1.0] * 40, [0.3] * 40), OPEN)
    unsent = run.with_requests(send_s=np.full(40, np.nan), done_s=np.full(40, np.nan))

    assert demand_of(unsent.record, unsent.report).streams == 0
