"""Records that a table of field names reads: what is read of each tool, and what does not follow is named."""

import csv
import io
import json
from typing import Any

import pytest

from bench.audit.claim import Claim
from tests.warehouse.importers.reading import FORMATS, alarms, claims_at, claims_of

RECORDS = FORMATS / "records"


def _json(name: str) -> Any:
    return json.loads((RECORDS / name).read_text())


def _changed(name: str, **values: Any) -> list[Claim]:
    """The claims of a twin of JSON lines with other values in its first record."""
    return claims_of(name, json.dumps({**_json(name), **values}) + "\n\n")


def test_trtllm_bench_is_read_by_its_paths() -> None:
    report, (claim,) = _json("trtllm-bench.json"), claims_at(RECORDS / "trtllm-bench.json")

    performance = report["performance"]
    assert claim.asked.engine == "tensorrt-llm"
    assert (claim.asked.gpu_count, claim.asked.precision, claim.asked.kv_precision) == (2, "fp8", "fp8")
    assert claim.said.output_throughput_tok_per_s == performance["system_output_throughput_tok_s"]
    assert claim.said.duration_s == pytest.approx(performance["total_latency_ms"] / 1e3)
    assert claim.latency("tpot", "p99") == pytest.approx(report["streaming_metrics"]["tpot_percentiles"]["p99"] / 1e3)


@pytest.mark.parametrize("mean", ["avg_input_length", "avg_output_length"])
def test_a_mean_of_more_tokens_than_a_number_holds_gives_no_total(mean: str) -> None:
    report = _json("trtllm-bench.json")
    report["request_info"][mean] = 1e308

    (claim,) = claims_of("report.json", json.dumps(report))

    totals = {"avg_input_length": claim.said.total_input_tokens, "avg_output_length": claim.said.total_output_tokens}
    assert [name for name, total in totals.items() if total is None] == [mean]


def test_two_fields_of_one_number_that_differ_are_named() -> None:
    report = _json("trtllm-bench.json")
    report["streaming_metrics"]["avg_ttft_ms"] *= 2

    found = alarms(claims_of("report.json", json.dumps(report)))

    assert any("streaming_metrics.ttft_percentiles.average" in alarm for alarm in found)


def test_a_file_of_an_older_sglang_has_no_rate_of_requests() -> None:
    record = _json("sglang-serve.jsonl")
    text = json.dumps({name: value for name, value in record.items() if name != "request_throughput"})

    (claim,) = claims_of("sglang.jsonl", text)

    assert (claim.lineage.format, claim.said.completed) == ("sglang-serve", record["completed"])
    assert claim.said.request_throughput_per_s is None


def test_sglang_serving_is_read_without_a_number_of_prompts() -> None:
    (claim,) = claims_at(RECORDS / "sglang-serve.jsonl")

    assert (claim.lineage.format, claim.asked.engine, claim.asked.isl, claim.asked.osl) == (
        "sglang-serve",
        "sglang",
        512,
        128,
    )
    assert claim.unread["mean concurrency"] == pytest.approx(_json("sglang-serve.jsonl")["concurrency"])


def test_lengths_that_vary_are_no_lengths_of_every_request() -> None:
    (claim,) = _changed("sglang-serve.jsonl", random_range_ratio=0.0)

    assert (claim.asked.isl, claim.asked.has_fixed_lengths) == (None, None)


@pytest.mark.parametrize("name", ["prefill_throughput", "median_decode_throughput", "overall_throughput"])
def test_a_rate_of_one_batch_that_does_not_follow_from_its_time_is_named(name: str) -> None:
    record = json.loads((RECORDS / "sglang-one-batch.jsonl").read_text().splitlines()[1])

    assert alarms(claims_of("result.jsonl", json.dumps(record) + "\n\n")) == []
    assert any(alarm.startswith("FAIL") for alarm in alarms(claims_of("r.jsonl", json.dumps(record | {name: 7.0}))))


@pytest.mark.parametrize("name", ["llama-bench.json", "llama-bench.csv"])
def test_llama_bench_times_prompts_answers_or_both(name: str) -> None:
    prompts, answers, both = claims_at(RECORDS / name)

    assert prompts.said.input_throughput_tok_per_s == pytest.approx(3200, rel=0.01)
    assert answers.said.output_throughput_tok_per_s == pytest.approx(95, rel=0.01)
    assert both.said.total_throughput_tok_per_s == pytest.approx(410, rel=0.01)
    assert (answers.asked.precision, answers.asked.gpu, answers.asked.batch) == (
        "q4_k",
        "NVIDIA GeForce RTX 4090",
        1,
    )
    assert answers.asked.weights_gib == pytest.approx(4920734720 / 2**30)


def test_a_mean_of_llama_bench_that_is_not_that_of_its_samples_is_named() -> None:
    records = _json("llama-bench.json")
    records[1]["samples_ns"] = [2 * each for each in records[1]["samples_ns"]]

    assert any("the mean of samples_ns" in alarm for alarm in alarms(claims_of("l.json", json.dumps(records))))


def test_the_csv_of_genai_perf_is_read_with_its_units() -> None:
    (claim,) = claims_at(RECORDS / "genai-perf.csv")

    rows = {row[0]: row[1] for row in csv.reader(io.StringIO((RECORDS / "genai-perf.csv").read_text())) if row}
    assert claim.latency("ttft", "mean") == pytest.approx(float(rows["Time To First Token (ms)"]) / 1e3)
    assert claim.said.output_throughput_tok_per_s == float(rows["Output Token Throughput (per sec)"])
    assert claim.said.completed == 640


def test_the_csv_of_mlperf_counts_gpus_over_nodes() -> None:
    claim = claims_at(RECORDS / "mlperf-summary.csv")[0]

    assert (claim.asked.gpu_count, claim.said.output_throughput_tok_per_s) == (16, 56000.5)


def test_a_result_of_vllm_needs_no_backend() -> None:
    text = (FORMATS / "vllm_serve/older.json").read_text()
    without = {name: value for name, value in json.loads(text).items() if name != "backend"}

    (claim,) = claims_of("result.json", json.dumps(without))

    assert (claim.lineage.format, claim.asked.engine) == ("vllm-serve", None)
    assert claim.said.completed == without["completed"]


def test_a_prediction_of_aiconfigurator_is_read_as_expected_and_not_as_measured() -> None:
    claim, second = claims_at(RECORDS / "aiconfigurator.csv")

    asked = claim.asked
    assert claim.kind == "expected"
    assert (asked.engine, asked.engine_version, asked.gpu) == ("tensorrt-llm", "1.2.0", "h200 sxm")
    assert (asked.gpu_count, asked.tp_size, asked.precision, asked.kv_precision) == (2, 2, "fp8", "fp8")
    assert (asked.isl, asked.osl, asked.concurrency, second.asked.concurrency) == (1024, 256, 1, 16)
    assert (claim.latency("ttft", "mean"), claim.latency("tpot", "mean")) == pytest.approx((0.038, 0.0052))
    e2el_s = 0.038 + 255 * 0.0052
    assert claim.latency("e2el", "mean") == pytest.approx(e2el_s)
    assert claim.said.output_throughput_tok_per_s == pytest.approx(256 / e2el_s)
    assert claim.said.output_per_gpu_tok_per_s == pytest.approx(128 / e2el_s)
