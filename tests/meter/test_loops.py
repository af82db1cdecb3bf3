"""Closed loops keep their number in flight; open loops keep their schedule."""

from itertools import pairwise
from statistics import mean, pstdev

import pytest

from meter.plan import Load
from meter.schedule import arrivals_ns
from tests.meter.conftest import RunMeter, StartTruth

POISSON = Load("poisson", rate_per_s=2.0)


def test_a_closed_loop_reaches_the_requested_number_in_flight_and_never_exceeds_it(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    run_meter(truth.url, load={"kind": "closed", "concurrency": 4}, request_count=12, warmup_count=4)

    running = [entry["running"] for entry in truth.log("received")]
    assert max(running) == 4
    assert running[:4] == [1, 2, 3, 4]


def test_a_slot_goes_to_the_next_request_before_anything_else_happens(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 3}, request_count=12, warmup_count=3)

    events = sorted(at for row in report.rows for at in row["event_at_ns"])
    freed: dict[int, int] = {}
    for row in report.rows:
        free_at = freed.get(row["connection"])
        if free_at is not None:
            assert not any(free_at < at < row["send_start_ns"] for at in events)
        freed[row["connection"]] = row["done_at_ns"]
    assert len(freed) == 3


def test_warm_up_rolls_into_measurement_without_a_drain(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth(ttft_ms=20)

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 2}, request_count=4, warmup_count=3)

    assert [row["phase"] for row in report.rows] == ["warmup"] * 3 + ["measured"] * 4
    first_measured = report.rows[3]["send_start_ns"]
    assert any(row["done_at_ns"] > first_measured for row in report.rows[:3])
    assert report.summary["planned"] == report.summary["issued"] == 4


def test_a_closed_loop_has_no_intended_time(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url)

    assert {row["intended_at_ns"] for row in report.rows} == {None}
    assert report.summary["client"]["dispatch_delay_p99_ms"] is None


def test_a_closed_loop_reports_how_long_a_slot_stayed_free(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 2}, request_count=8)

    client, workers = report.summary["client"], report.summary["workers"]
    free_ns = [row["send_start_ns"] - row["slot_free_ns"] for row in report.rows if row["slot_free_ns"] is not None]
    assert len(free_ns) == 6
    assert client["send_gap_p99_ms"] == max(free_ns) / 1e6 > 0
    assert client["core_share_max"] == max(one["cpu_s"] / one["wall_s"] for one in workers) > 0


def test_an_open_loop_intends_exactly_its_schedule(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "poisson", "rate_per_s": 40.0}, request_count=8, warmup_count=2)

    intended = [row["intended_at_ns"] for row in report.rows]
    arrivals = arrivals_ns(Load("poisson", rate_per_s=40.0), 10, 123)
    assert [at - intended[0] for at in intended] == [at - arrivals[0] for at in arrivals]
    assert all(row["send_start_ns"] >= row["intended_at_ns"] for row in report.rows)
    late_ns = [row["send_start_ns"] - row["intended_at_ns"] for row in report.rows if row["phase"] == "measured"]
    assert report.summary["client"]["dispatch_delay_p99_ms"] == max(late_ns) / 1e6 > 0


def test_an_open_loop_does_not_wait_for_answers(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth(ttft_ms=400)

    report = run_meter(truth.url, load={"kind": "constant", "rate_per_s": 50.0})

    assert report.outcomes == ["ok"] * 6
    assert max(row["send_start_ns"] for row in report.rows) < min(row["done_at_ns"] for row in report.rows)
    assert len({row["connection"] for row in report.rows}) == 6


def test_constant_arrivals_keep_one_gap() -> None:
    assert arrivals_ns(Load("constant", rate_per_s=4.0), 3, 0) == [0, 250_000_000, 500_000_000]


def test_poisson_arrivals_follow_from_the_seed() -> None:
    assert arrivals_ns(POISSON, 50, 7) == arrivals_ns(POISSON, 50, 7)
    assert arrivals_ns(POISSON, 50, 7) != arrivals_ns(POISSON, 50, 8)


@pytest.mark.parametrize("burstiness", [None, 0.25, 1.0, 4.0, 100.0])
def test_drawn_gaps_have_the_mean_of_the_rate_and_the_spread_of_their_shape(burstiness: float | None) -> None:
    load = Load("poisson" if burstiness is None else "gamma", rate_per_s=2.0, burstiness=burstiness)

    gaps = [(later - earlier) / 1e9 for earlier, later in pairwise([0, *arrivals_ns(load, 100_000, 7)])]

    # A gamma of this shape and mean 0.5: variance mean^2 / shape, skewness 2 / sqrt(shape).
    shape = burstiness or 1.0
    spread = pstdev(gaps)
    middle = mean(gaps)
    skewness = mean((gap - middle) ** 3 for gap in gaps) / spread**3
    assert middle == pytest.approx(0.5, rel=0.02)
    assert spread == pytest.approx(0.5 / shape**0.5, rel=0.02)
    assert skewness == pytest.approx(2 / shape**0.5, rel=0.1, abs=0.02)


def test_a_trace_is_sent_as_it_was_recorded(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()
    arrivals_s = [0.0, 0.0, 0.05, 0.2]

    report = run_meter(truth.url, load={"kind": "trace", "arrivals_s": arrivals_s}, request_count=3, warmup_count=1)

    intended = [row["intended_at_ns"] for row in report.rows]
    assert [at - intended[0] for at in intended] == [0, 0, 50_000_000, 200_000_000]
    assert report.outcomes == ["ok"] * 4
