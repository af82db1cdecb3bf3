"""Drivers that load the model themselves: their loads, command lines and reports, and what is held against a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bench import evidence_columns as ev
from bench.audit.batches import batch_evidence
from bench.audit.own_claim import claim_of
from bench.audit.rules import NIGHT_RULES, NOT_CHECKABLE
from bench.errors import UnreadableResultError
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.drivers.by_name import OFFLINE, read_batches
from bench.loadgen.drivers.offline import engine_version
from bench.plan import describe_load
from bench.suite.parse import parse_suite
from bench.suite.scaling import scaled
from bench.suite.workload import Workload
from tests.bench.builders import SCENARIO, run_record, with_workload

SUITE = Path(__file__).parents[3] / "suites" / "amd-mi300x-throughput.toml"
BATCH = Workload.model_validate({"isl": 128, "osl": 32, "request_count": 16, "driver": "vllm-throughput"})
REPEATED = Workload(isl=64, osl=32, concurrency=4, request_count=12, warmup_count=4, driver="vllm-latency")
# What vLLM 0.32.0 wrote on two cores, with another model's name.
THROUGHPUT = {
    "elapsed_time": 1.146,
    "num_requests": 16,
    "total_num_tokens": 2560,
    "requests_per_second": 16 / 1.146,
    "tokens_per_second": 2560 / 1.146,
}
LATENCY = {"avg_latency": 0.32, "latencies": [0.31, 0.32, 0.33], "percentiles": {"50": 0.32}}


def _said(found: object) -> list[bytes]:
    return [json.dumps(found).encode()]


def _row(report: BatchReport, **changes: Any) -> dict[str, Any]:
    latencies = {
        f"{metric}_{q}_ms": None for metric in ("ttft", "tpot", "itl", "itl_event", "e2el") for q in PERCENTILES
    }
    return {
        **latencies,
        "completed": report.requests,
        "failed": 0,
        "duration_s": report.elapsed_s,
        "output_throughput_tok_per_s": report.output_tok_per_s,
        **changes,
    }


PERCENTILES = ("mean", "p50", "p90", "p95", "p99", "p999")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"driver": "vllm-throughput", "concurrency": 4}, "leave concurrency"),
        ({"driver": "vllm-throughput", "warmup_count": 1}, "no warm-up"),
        ({"arrivals": "batch"}, "need each other"),
        ({"driver": "vllm-latency", "concurrency": 4, "request_count": 6}, "multiples of 4"),
        ({"driver": "vllm-latency", "concurrency": 4, "warmup_count": 2}, "multiples of 4"),
        ({"driver": "vllm-latency"}, "needs concurrency"),
        ({"driver": "vllm-latency", "concurrency": 4, "workers": 2}, "one process"),
    ],
)
def test_an_offline_load_that_its_driver_cannot_run_is_refused(keys: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Workload.model_validate({"isl": 8, "osl": 8, "request_count": 8} | keys)


@pytest.mark.parametrize(
    ("work", "words"),
    [(BATCH, "128 in, 32 out, all 16 at once"), (REPEATED, "64 in, 32 out, batches of 4")],
    ids=["throughput", "latency"],
)
def test_a_plan_says_how_batches_are_run(work: Workload, words: str) -> None:
    assert describe_load(with_workload(work)) == words


def test_the_command_of_a_row_of_amds_page_is_the_one_that_it_prints() -> None:
    suite = parse_suite(SUITE.read_text(), str(SUITE))
    rows = [one for one in suite.expand() if one.workload.driver == "vllm-throughput"]
    argv = OFFLINE["vllm-throughput"].argv(Path("vllm"), rows[0], Path("/models/m"), 7, Path("/out/result.json"))

    assert argv == (
        *("vllm", "bench", "throughput", "--model", "/models/m", "--max-model-len", "8192"),
        *("--tensor-parallel-size", "8", "--dtype", "float16", "--quantization", "fp8", "--kv-cache-dtype", "fp8"),
        *("--gpu-memory-utilization", "0.9", "--max-num-batched-tokens", "131072"),
        *("--distributed-executor-backend", "mp", "--trust-remote-code", "--no-enable-prefix-caching"),
        *("--max-num-seqs", "3200"),
        *("--dataset-name", "random", "--random-input-len", "128", "--random-output-len", "2048"),
        *("--num-prompts", "3200", "--seed", "7", "--output-json", "/out/result.json"),
    )


def test_the_suite_of_amds_page_has_its_rows_and_one_shape_of_each_driver_on_this_computer() -> None:
    suite = parse_suite(SUITE.read_text(), str(SUITE))
    found = [(one.model.name, one.workload) for one in suite.expand()]
    counts = {"llama-3.1-70b": (3200, 1500, 2000, 1500), "llama-3.1-405b": (1500, 1500, 2000, 500)}
    lengths = ((128, 2048), (128, 4096), (500, 2000), (2048, 2048))

    throughput = [(model, (w.isl, w.osl), w.request_count) for model, w in found if w.driver == "vllm-throughput"]
    assert throughput == [(m, length, n) for m, row in counts.items() for length, n in zip(lengths, row, strict=True)]
    latency = {
        (m, w.isl, w.concurrency, w.request_count, w.warmup_count) for m, w in found if w.osl == 2048 and w.concurrency
    }
    batches = (1, 2, 4, 8, 16, 32, 64, 128)
    assert latency == {(m, isl, b, 5 * b, 3 * b) for m in counts for isl in (128, 2048) for b in batches}
    assert suite.local is not None
    here = [(one.model.name, one.workload) for one in scaled(suite, suite.local).expand()]
    assert sorted((m, w.driver, w.in_flight, w.request_count, w.warmup_count) for m, w in here) == sorted(
        (f"small-{m}", *shape)
        for m in counts
        for shape in (("vllm-throughput", 16, 16, 0), ("vllm-latency", 1, 5, 1), ("vllm-latency", 2, 10, 2))
    )


def test_the_flags_of_a_server_are_left_out_and_runs_without_one_share_no_server_with_others() -> None:
    engine = SCENARIO.engine.model_copy(update={"flags": ("--enable-per-request-metrics", "--dtype", "bfloat16")})
    scenario = with_workload(REPEATED, SCENARIO.model_copy(update={"engine": engine}))
    argv = OFFLINE["vllm-latency"].argv(Path("vllm"), scenario, Path("m"), 1, Path("o"))

    assert argv[5:] == (
        *("--max-model-len", "4096", "--dtype", "bfloat16", "--seed", "1", "--input-len", "64", "--output-len", "32"),
        *("--batch-size", "4", "--num-iters-warmup", "1", "--num-iters", "3", "--output-json", "o"),
    )
    served = scenario.model_copy(update={"workload": SCENARIO.workload})
    assert scenario.server_id not in (served.server_id, SCENARIO.server_id)


def test_generated_tokens_are_told_from_those_of_the_prompts() -> None:
    report = read_batches(with_workload(BATCH), _said(THROUGHPUT))

    assert (report.input_tokens, report.output_tokens) == (16 * 128, 16 * 32)
    assert report.output_tok_per_s == pytest.approx(16 * 32 / 1.146)
    assert report.stated_tok_per_s == pytest.approx(report.output_tok_per_s * (128 + 32) / 32)


def test_the_time_of_a_batch_gives_the_rate_of_its_tokens() -> None:
    report = read_batches(with_workload(REPEATED), _said(LATENCY))

    assert report.requests == 12
    assert report.elapsed_s == pytest.approx(0.96)
    assert report.output_tok_per_s == pytest.approx(4 * 32 / 0.32)


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (BATCH, b""),
        (BATCH, b"[1]"),
        (BATCH, json.dumps(THROUGHPUT | {"elapsed_time": 0}).encode()),
        (BATCH, json.dumps({"num_requests": 16}).encode()),
        (REPEATED, json.dumps(LATENCY | {"latencies": []}).encode()),
        (REPEATED, json.dumps(LATENCY | {"avg_latency": 0.4}).encode()),
    ],
)
def test_a_file_that_is_no_such_report_is_unreadable(work: Workload, text: bytes) -> None:
    with pytest.raises(UnreadableResultError, match="vllm bench"):
        read_batches(with_workload(work), [text])


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({}, ev.THROUGHPUT_REL, 0.0),
        ({"tokens_per_second": 2560 / 1.146 * 1.25}, ev.THROUGHPUT_REL, 0.2),
        ({"total_num_tokens": 2560 - 16 * 8}, ev.OSL_RATIO, 0.75),
        ({"num_requests": 8}, ev.ANSWERED_SHARE, 0.5),
    ],
)
def test_a_batch_is_held_against_its_own_arithmetic(changes: dict[str, float], column: str, value: float) -> None:
    record = run_record(with_workload(BATCH))
    report = read_batches(record.asked, _said(THROUGHPUT | changes))

    evidence = batch_evidence(record, report, _row(report))

    assert evidence[column] == pytest.approx(value, abs=1e-9)
    assert evidence[NOT_CHECKABLE] == 0


def test_rules_about_single_requests_and_servers_are_not_about_batches() -> None:
    about = {rule.code for rule in NIGHT_RULES if rule.applies("open", "vllm-throughput")}

    assert about == {
        *("failure_rate", "incomplete", "duration_short", "derived_mismatch", "percentile_order", "osl_not_reached"),
        *("busy_host", "stolen_cpu", "busy_host_gpu", "slow_core"),
    }


def test_a_run_of_batches_claims_a_batch_and_not_a_concurrency() -> None:
    record = run_record(with_workload(REPEATED))
    report = read_batches(record.asked, _said(LATENCY))
    row = _row(report, run_id="r", total_input_tokens=768, total_output_tokens=384, usd_per_mtok_output=None)
    row |= {"request_throughput_per_s": report.requests_per_s, "is_first_after_start": None}

    claim = claim_of(record, report, row, "0" * 64)

    assert (claim.asked.batch, claim.asked.concurrency, claim.asked.is_open_loop) == (4, None, False)
    assert claim.series is not None
    assert claim.series.iteration_s is not None
    assert list(claim.series.iteration_s) == [0.31, 0.32, 0.33]


def test_the_version_is_the_one_that_the_engine_logs() -> None:
    line = "INFO 11-23 [core.py:99] Initializing a V1 LLM engine (v0.32.0+cpu) with config: model='m'"

    assert engine_version(line) == "0.32.0+cpu"
    assert engine_version("nothing") is None
