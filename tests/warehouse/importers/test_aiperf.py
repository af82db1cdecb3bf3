import gzip
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.audit.claim import Claim
from bench.errors import ToldBesideError, UnreadableResultError
from tests.data.formats.closed_loop import closed_loop
from tests.warehouse.importers.mutating import mutated
from tests.warehouse.importers.reading import FORMATS, alarms, claims_at, claims_of
from warehouse.importers import read_claims
from warehouse.importers.parsing.document import read_document
from warehouse.rows.claim_request_rows import request_tables

HERE = FORMATS / "aiperf"
RECORDS = HERE / "profile_export.jsonl"
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

    (claim,) = claims_at(HERE / "alone.jsonl")

    assert claim.series is not None
    assert (claim.asked.warmup_count, claim.said.completed) == (1, 400)
    assert claim.series.ttft_s == pytest.approx(run.ttft_s)
    assert claim.series.gap_s == pytest.approx(np.repeat(run.tpot_s, 3))
    assert claim.series.gap_at is not None
    assert claim.series.gap_at[-1] == 1200
    assert claim.said.duration_s == pytest.approx(run.duration_s, abs=1e-4)


def test_a_record_with_an_error_or_cancelled_has_failed() -> None:
    lines = (HERE / "alone.jsonl").read_text().splitlines()[1:5]
    broken = json.loads(lines[0]) | {"error": {"code": 500, "message": "broken"}}
    cancelled = json.loads(lines[1])
    cancelled["metadata"]["was_cancelled"] = True

    (claim,) = claims_of("r.jsonl", "\n".join([json.dumps(broken), json.dumps(cancelled), *lines[2:]]))

    assert (claim.said.completed, claim.said.failed) == (2, 2)


def test_a_line_that_is_no_record_is_named() -> None:
    text = (HERE / "alone.jsonl").read_text().splitlines()[0]

    with pytest.raises(UnreadableResultError, match=r"r\.jsonl line 2 is not a record"):
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


def pair(records: str = "", **values: Any) -> Claim:
    """The claim of the twin with these values, and these records beside it."""
    (claim,) = claims_of(AGGREGATE.name, changed(**values), profile_export__jsonl=records or RECORDS.read_text())
    return claim


def codes(claim: Claim) -> set[str]:
    return {alarm.split(":")[0] for alarm in alarms([claim])}


def test_an_aggregate_and_the_records_beside_it_are_one_measurement() -> None:
    run, (claim,) = closed_loop(seed=7), claims_at(AGGREGATE)

    assert claim.series is not None
    assert claim.series.ttft_s == pytest.approx(run.ttft_s)
    assert claim.said.duration_s == pytest.approx(run.duration_s)
    assert claim.required >= {"sum_mismatch", "stat_mismatch"}
    with pytest.raises(
        ToldBesideError, match=r"profile_export\.jsonl holds the requests of profile_export_aiperf\.json"
    ):
        claims_at(RECORDS)


@pytest.mark.parametrize(
    ("aggregate", "records"),
    [("profile_export_aiperf.json", "profile_export.jsonl"), ("mine.json", "mine.jsonl"), ("a.json", "a.jsonl.gz")],
)
def test_the_two_files_find_each_other_by_their_prefix(aggregate: str, records: str) -> None:
    content = RECORDS.read_bytes()
    content = gzip.compress(content) if records.endswith(".gz") else content
    beside = {aggregate: AGGREGATE.read_bytes(), records: content}

    (claim,) = read_claims(read_document(aggregate, beside[aggregate], beside.get, sorted(beside)))

    assert claim.series is not None
    with pytest.raises(ToldBesideError):
        list(read_claims(read_document(records, beside[records], beside.get, sorted(beside))))


def test_records_beside_another_file_are_a_measurement_of_their_own() -> None:
    (claim,) = claims_of(RECORDS.name, RECORDS.read_text(), profile_export_aiperf__json='{"notes": "none"}')

    assert (claim.lineage.format, claim.said.completed) == ("aiperf-records", 400)


def test_an_aggregate_that_follows_from_its_records_raises_no_doubt() -> None:
    assert codes(pair()) == set()


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"total_osl": {"unit": "tokens", "avg": 51_201}}, "sum_mismatch"),
        ({"total_isl": {"unit": "tokens", "avg": 204_000}}, "sum_mismatch"),
        ({"request_count": {"unit": "requests", "avg": 399}}, "derived_mismatch"),
        ({"time_to_first_token": {"unit": "ms", "avg": 120.0, "p50": 119.0, "p99": 121.0}}, "stat_mismatch"),
        ({"request_latency": {"unit": "ms", "avg": 1800.0}}, "stat_mismatch"),
    ],
)
def test_an_aggregate_that_does_not_follow_from_its_records_fails(values: dict[str, Any], code: str) -> None:
    assert f"FAIL {code}" in codes(pair(**values))


def test_a_record_more_than_the_aggregate_counts_fails() -> None:
    records = RECORDS.read_text()

    assert "FAIL sum_mismatch" in codes(pair(records + records.splitlines()[-1] + "\n"))


def test_records_of_requests_that_failed_are_no_contradiction() -> None:
    last = json.loads(RECORDS.read_text().splitlines()[-1])
    failed = json.dumps(last | {"error": {"code": 500, "message": "broken"}, "metrics": {}}) + "\n"
    config = json.loads(AGGREGATE.read_text())["input_config"]
    del config["loadgen"]["request_count"]

    claim = pair(
        RECORDS.read_text() + 2 * failed, input_config=config, error_request_count={"unit": "requests", "avg": 2}
    )

    assert codes(claim) <= {"WARN failure_rate"}
    assert claim.series is not None
    assert claim.series.error is not None
    assert list(claim.series.error[-3:]) == [None, "500 broken", "500 broken"]


def test_records_that_are_cut_off_are_left_out_with_a_word() -> None:
    claim = pair(RECORDS.read_text()[:-40])

    assert claim.series is None
    assert claim.said.completed == 400
    assert [remark.code for remark in claim.remarks] == ["unreadable_value"]
    assert "profile_export.jsonl line 401 column" in claim.remarks[0].message


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_no_mutation_of_the_records_beside_an_aggregate_is_a_crash(data: st.DataObject) -> None:
    lines = RECORDS.read_text().splitlines()[:6]
    at = data.draw(st.integers(0, len(lines) - 1))

    lines[at] = data.draw(mutated(lines[at]))

    claim = pair("\n".join(lines))
    alarms([claim])
    assert all(rows.validate() is None for rows in request_tables("import-a/0", claim))
