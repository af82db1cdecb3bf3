"""The times the meter takes, beside the times the server knows to be true."""

import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.meter.conftest import Report, RunMeter, StartTruth

CLOCKS_NS = 5_000  # the origin is written in microseconds, and each clock reading is some 100 ns wide


def origin_ns(report: Report) -> int:
    """The origin on the monotonic clock, which the truth server on this host shares."""
    utc = datetime.fromisoformat(report.summary["origin_utc"])
    since_epoch = utc - datetime(1970, 1, 1, tzinfo=UTC)
    real_ns = since_epoch // timedelta(microseconds=1) * 1000
    return real_ns - int(report.summary["clock"]["real_minus_mono_start_ns"])


def test_no_token_is_seen_before_it_was_written(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 3})

    origin = origin_ns(report)
    for row in report.rows:
        written = [at - origin - CLOCKS_NS for at in truth.written_at(row["request_id"])]
        assert len(row["event_at_ns"]) == len(written) == 8
        assert all(said <= seen for said, seen in zip(written, row["event_at_ns"], strict=True))


def test_a_token_is_seen_before_the_next_one_is_written(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth(itl_ms=100)

    report = run_meter(truth.url, request_count=2)

    origin = origin_ns(report)
    for row in report.rows:
        written = [at - origin for at in truth.written_at(row["request_id"])]
        assert all(seen < later for seen, later in zip(row["event_at_ns"], written[1:], strict=False))
        assert row["done_at_ns"] < written[-1] + 100_000_000


def test_no_request_is_received_before_it_was_sent(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url)

    received = {entry["request_id"]: entry["at_ns"] - origin_ns(report) for entry in truth.log("received")}
    assert all(row["send_start_ns"] <= received[row["request_id"]] + CLOCKS_NS for row in report.rows)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps packets for us")
def test_the_kernels_stamp_lies_between_the_write_and_our_read(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url)

    origin = origin_ns(report)
    for row in report.rows:
        written = [at - origin - CLOCKS_NS for at in truth.written_at(row["request_id"])]
        for said, stamped, seen in zip(written, row["event_kernel_ns"], row["event_at_ns"], strict=True):
            assert said <= stamped <= seen + CLOCKS_NS


def test_the_times_of_one_request_are_in_order(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, load={"kind": "constant", "rate_per_s": 40.0})

    order = ("intended", "send_start", "send_end", "headers", "first_token", "last_token", "done")
    for row in report.rows:
        times = [row[f"{name}_at_ns" if name not in {"send_start", "send_end"} else f"{name}_ns"] for name in order]
        assert times == sorted(times)
        assert row["event_at_ns"] == sorted(row["event_at_ns"])
        assert row["first_token_at_ns"] == row["event_at_ns"][0]
        assert row["last_token_at_ns"] == row["event_at_ns"][-1]


def test_the_first_token_takes_at_least_as_long_as_the_server_waited(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth(ttft_ms=50, itl_ms=10)

    report = run_meter(truth.url, request_count=2)

    for row in report.rows:
        assert row["first_token_at_ns"] - row["send_start_ns"] >= 49_000_000
        assert row["last_token_at_ns"] - row["send_start_ns"] >= 118_000_000


def test_tokens_are_counted_by_their_ids_when_several_share_an_event(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth("tokens_per_event:3")

    report = run_meter(truth.url)

    assert {tuple(row["event_tokens"]) for row in report.rows} == {(3, 3, 2)}
    assert {row["outcome"] for row in report.rows} == {"ok"}


def test_an_event_without_ids_counts_as_one_token(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("tokens_per_event:4")

    report = run_meter(truth.url, extra_body={"ignore_eos": True})

    assert {tuple(row["event_tokens"]) for row in report.rows} == {(1, 1)}


def test_events_that_come_in_one_read_are_counted_as_merged(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("events_per_write:4", ttft_ms=20, itl_ms=20)

    report = run_meter(truth.url, load={"kind": "closed", "concurrency": 1}, request_count=2)

    for row in report.rows:
        assert row["merged_events"] == 8
        assert len(set(row["event_at_ns"])) == 2


def test_server_and_meter_agree_on_every_count(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("", "--enable-prompt-tokens-details")

    report = run_meter(truth.url)

    for row in report.rows:
        assert row["prompt_tokens_counted"] == row["prompt_tokens_planned"] == 16
        assert row["output_tokens_counted"] == row["output_tokens_planned"] == sum(row["event_tokens"]) == 8
        assert row["cached_tokens"] == 0


def test_cached_tokens_are_null_if_the_server_does_not_report_them(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    report = run_meter(truth.url, request_count=1)

    assert report.rows[0]["cached_tokens"] is None
