"""The steady window: what is ramp and what is drain, and how many streams were live in between."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meter.steady import steady_window
from meter.turns import LATE_NS, Turns
from tests.meter.conftest import RunMeter, StartTruth

Span = tuple[int, int | None]


def rows(*spans: Span, warmup: int = 0) -> list[dict[str, Any]]:
    return [
        {"phase": "warmup" if place < warmup else "measured", "send_start_ns": begin, "done_at_ns": end}
        for place, (begin, end) in enumerate(spans)
    ]


def test_the_window_lasts_while_enough_streams_are_live() -> None:
    found = steady_window(rows((0, 50), (10, 60), (60, 90), (50, 100)), 2, 100)

    assert found is not None
    assert (found.begin_ns, found.end_ns) == (10, 90)
    assert found.live_mean == pytest.approx(2.0)


def test_the_window_does_not_begin_before_the_first_measured_request() -> None:
    found = steady_window(rows((0, 30), (0, 40), (30, 90), (40, 80), warmup=2), 2, 90)

    assert found is not None
    assert (found.begin_ns, found.end_ns) == (30, 80)


def test_a_pause_between_requests_lowers_the_mean_and_does_not_end_the_window() -> None:
    found = steady_window(rows((0, 40), (0, 100), (60, 100)), 2, 100)

    assert found is not None
    assert (found.begin_ns, found.end_ns) == (0, 100)
    assert found.live_mean == pytest.approx(1.8)


def test_streams_that_were_never_all_live_have_no_window() -> None:
    assert steady_window(rows((0, 10), (10, 20)), 2, 20) is None


def test_nothing_measured_has_no_window() -> None:
    assert steady_window(rows((0, 10), (0, 10), warmup=2), 2, 10) is None


def test_a_request_without_an_answer_is_live_to_the_end() -> None:
    found = steady_window(rows((0, None), (0, 80)), 2, 100)

    assert found is not None
    assert (found.begin_ns, found.end_ns) == (0, 80)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 100)), min_size=1, max_size=30), st.integers(1, 5))
def test_the_mean_is_never_above_what_was_live_at_once(spans: list[tuple[int, int]], asked: int) -> None:
    every = rows(*((begin, begin + length) for begin, length in spans))

    found = steady_window(every, asked, 1000)

    most = max(sum(begin <= at < begin + length for begin, length in spans) for at, _ in spans)
    assert (found is None) == (most < asked)
    if found is not None:
        assert 0 < found.live_mean <= most


def test_every_measured_request_of_a_closed_loop_is_in_ramp_steady_or_drain(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 3}, request_count=12, warmup_count=3)

    windows = [row["window"] for row in report.rows]
    steady = report.summary["steady"]
    assert windows[:3] == [None] * 3
    assert set(windows[3:]) <= {"ramp", "steady", "drain"}
    assert windows.count("drain") == 2
    assert (steady["live_asked"], steady["begin_ns"]) == (3, min(row["send_start_ns"] for row in report.rows[3:]))


def test_an_open_loop_has_no_steady_window(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "constant", "rate_per_s": 100.0})

    assert report.summary["steady"] is None
    assert {row["window"] for row in report.rows} == {None}


def test_events_that_poll_waited_for_are_not_late() -> None:
    turns = Turns()
    turns.note(called_ns=0, back_ns=20_000_000, events=1)

    assert turns.most_late_ns(20_010_000) == 10_000


def test_events_found_at_once_may_be_as_old_as_the_last_poll() -> None:
    turns = Turns()
    turns.note(called_ns=0, back_ns=20_000_000, events=1)
    turns.note(called_ns=45_000_000, back_ns=45_010_000, events=3)

    assert turns.most_late_ns(45_020_000) == 25_020_000 > LATE_NS
    assert turns.most_late_ns(20_010_000) == 10_000


def test_a_poll_with_many_events_takes_time_without_waiting() -> None:
    turns = Turns()
    turns.note(called_ns=0, back_ns=20_000_000, events=1)
    turns.note(called_ns=25_000_000, back_ns=26_000_000, events=4000)

    assert turns.most_late_ns(26_500_000) == 6_500_000
