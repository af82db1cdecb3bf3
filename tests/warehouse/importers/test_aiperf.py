import json
from typing import Any

import numpy as np
import pytest

from bench.errors import UnreadableResultError
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.reading import FORMATS, claims_at, claims_of

HERE = FORMATS / "aiperf"
AGGREGATE = HERE / "profile_export_aiperf.json"


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(AGGREGATE.read_text()), **values})


def test_the_unit_that_stands_in_a_metric_counts() -> None:
    run = closed_loop(seed=7)
    in_seconds = {"unit": "sec", "avg": float(run.ttft_s.mean()), "p99": 0.25}

    (of_ms,), (of_s,) = claims_at(AGGREGATE), claims_of("a", changed(time_to_first_token=in_seconds))

    assert of_ms.latency("ttft", "mean") == pytest.approx(of_s.latency("ttft", "mean"))
    assert of_s.latency("ttft", "p99") == 0.25
    assert of_ms.latency("tpot", "p95") == pytest.approx(np.percentile(run.tpot_s, 95))
    assert of_ms.latency("e2el", "mean") == pytest.approx(run.e2el_s.mean())


def test_a_metric_without_a_unit_is_not_guessed() -> None:
    (claim,) = claims_of("a.json", changed(time_to_first_token={"avg": 120.0}))

    assert claim.latency("ttft", "mean") is None
    assert [remark.code for remark in claim.remarks] == ["unit_unknown"]
    assert "a.json time_to_first_token" in claim.remarks[0].message


def test_totals_and_window_are_those_of_the_report() -> None:
    run, said = closed_loop(seed=7), claims_at(AGGREGATE)[0].said

    assert (said.completed, said.failed, said.is_cancelled) == (400, 0, False)
    assert said.total_output_tokens == 51_200
    assert said.duration_s == pytest.approx(run.duration_s)
    assert said.output_throughput_tok_per_s == pytest.approx(run.output_tok_per_s)
    assert said.started_at_s == 1_790_000_000.0


def test_errors_are_counted_from_their_summary() -> None:
    errors = [{"error_details": {"code": 500}, "count": 3}, {"error_details": {"code": 429}, "count": 2}]

    assert claims_of("a", changed(error_summary=errors))[0].said.failed == 5


def test_a_cancelled_run_says_so() -> None:
    assert claims_of("a", changed(was_cancelled=True))[0].said.is_cancelled is True


def test_what_the_server_counted_in_its_answers_stands_beside_what_the_client_counted() -> None:
    totals = {name: {"unit": "tokens", "avg": count} for name, count in (("prompt", 205_000), ("completion", 51_300))}

    said = claims_of("a", changed(**{f"total_usage_{name}_tokens": total for name, total in totals.items()}))[0].said

    assert (said.usage_input_tokens, said.usage_output_tokens) == (205_000, 51_300)
    assert (said.total_input_tokens, said.total_output_tokens) == (204_800, 51_200)


def test_a_moment_without_a_zone_is_not_placed() -> None:
    assert claims_of("a", changed(start_time="2026-11-21T02:00:00"))[0].said.started_at_s is None


def test_telemetry_that_was_configured_and_is_empty_is_no_telemetry() -> None:
    empty = {"summary": {"endpoints_configured": ["x"], "endpoints_successful": ["x"]}, "endpoints": {}}

    device = claims_of("a", changed(telemetry_data=empty))[0].device

    assert device is not None
    assert (device.was_asked, device.sample_count, device.power_mean_w) == (True, 0, None)


def test_telemetry_is_of_each_gpu() -> None:
    device = claims_at(AGGREGATE)[0].device

    assert device is not None
    assert (device.device_count, device.sample_count) == (1, 90)
    assert (device.power_mean_w, device.power_max_w) == (500.0, 610.0)


def test_a_throughput_of_zero_is_a_failure() -> None:
    zero = {"unit": "tokens/sec", "avg": 0.0}

    (claim,) = claims_of("a", changed(output_token_throughput=zero))

    assert claim.said.output_throughput_tok_per_s is None
    assert [remark.code for remark in claim.remarks] == ["failed_not_zero"]


def test_records_are_series_and_the_warm_up_is_left_out() -> None:
    run = closed_loop(seed=7, osl=4, slots=1)

    (claim,) = claims_at(HERE / "profile_export.jsonl")

    assert claim.series is not None
    assert (claim.asked.warmup_count, claim.said.completed) == (1, 400)
    assert claim.series.ttft_s == pytest.approx(run.ttft_s)
    assert claim.series.gap_s == pytest.approx(np.repeat(run.tpot_s, 3))
    assert claim.series.gap_at is not None
    assert claim.series.gap_at[-1] == 1200
    assert claim.said.duration_s == pytest.approx(run.duration_s, abs=1e-4)


def test_a_record_with_an_error_or_cancelled_has_failed() -> None:
    lines = (HERE / "profile_export.jsonl").read_text().splitlines()[1:5]
    broken = json.loads(lines[0]) | {"error": {"code": 500, "message": "broken"}}
    cancelled = json.loads(lines[1])
    cancelled["metadata"]["was_cancelled"] = True

    (claim,) = claims_of("r.jsonl", "\n".join([json.dumps(broken), json.dumps(cancelled), *lines[2:]]))

    assert (claim.said.completed, claim.said.failed) == (2, 2)


def test_a_line_that_is_no_record_is_named() -> None:
    text = (HERE / "profile_export.jsonl").read_text().splitlines()[0]

    with pytest.raises(UnreadableResultError, match=r"r\.jsonl line 2 is no record"):
        claims_of("r.jsonl", f"{text}\n[1]\n")


def test_of_several_runs_only_means_of_means_are_read() -> None:
    runs = [closed_loop(seed=seed) for seed in (7, 8, 9)]

    (claim,) = claims_at(HERE / "aggregate.json")

    assert claim.kind == "derived"
    assert claim.latency("e2el", "mean") == pytest.approx(np.mean([run.e2el_s.mean() for run in runs]))
    assert claim.latency("e2el", "p99") is None
    assert "request_latency_p99" in claim.unread


def test_the_interval_over_several_runs_is_half_its_width() -> None:
    rates = [closed_loop(seed=seed).output_tok_per_s for seed in (7, 8, 9)]

    (claim,) = claims_at(HERE / "aggregate.json")

    half = 4.303 * np.std(rates, ddof=1) / 3**0.5
    assert claim.said.interval_half_width_share == pytest.approx(half / np.mean(rates))


def test_combinations_of_a_sweep_are_claims_of_their_own() -> None:
    metrics = json.loads((HERE / "aggregate.json").read_text())["metrics"]
    sweep = {"per_combination_metrics": [{"parameters": {"concurrency": n}, "metrics": metrics} for n in (2, 4)]}

    claims = claims_of("s.json", json.dumps(sweep))

    assert [claim.asked.concurrency for claim in claims] == [2, 4]
    assert claims[1].lineage.place == "per_combination_metrics[1]"
