"""A run of batches becomes a row: tokens over time, and nothing that only a stream or a server shows."""

import json

import pytest

from bench.suite.workload import Workload
from tests.bench.builders import run_record, with_workload
from warehouse.rows.run_folder import RunFiles, RunId
from warehouse.rows.run_rows import run_rows

BATCH = Workload.model_validate({"isl": 128, "osl": 32, "request_count": 16, "driver": "vllm-throughput"})
REPEATED = Workload(isl=64, osl=32, concurrency=4, request_count=12, warmup_count=4, driver="vllm-latency")
THROUGHPUT = {"elapsed_time": 2.0, "num_requests": 16, "total_num_tokens": 16 * 160, "tokens_per_second": 8 * 160}
LATENCY = {"avg_latency": 0.5, "latencies": [0.4, 0.5, 0.6]}


def _row(work: Workload, said: object) -> dict[str, object]:
    record = run_record(with_workload(work)).model_copy(update={"server": None, "accuracy": None})
    files = RunFiles(record.model_dump_json().encode(), {"result.json": json.dumps(said).encode()})
    rows = run_rows(RunId(record.night, record.scenario_id, record.repeat), files)
    assert (rows.requests, rows.server_samples) == (None, None)
    return rows.measurement


def test_one_batch_has_a_throughput_of_generated_tokens_and_no_latency() -> None:
    row = _row(BATCH, THROUGHPUT)

    names = ("completed", "failed", "duration_s", "output_throughput_tok_per_s", "total_input_tokens", "arrivals")
    assert [row[name] for name in names] == [16, 0, 2.0, 16 * 32 / 2.0, 16 * 128, "batch"]
    unknown = (
        "e2el_mean_ms",
        "ttft_p50_ms",
        "itl_p50_ms",
        "concurrency_asked",
        "concurrency_achieved",
        "server_generation_tokens",
    )
    assert {row.get(name) for name in unknown} == {None}
    assert "offline" in str(row["quality_not_checked"])


def test_repeated_batches_have_the_time_of_a_whole_batch() -> None:
    row = _row(REPEATED, LATENCY)

    assert (row["e2el_mean_ms"], row["e2el_sample_count"], row["duration_s"]) == (500.0, 3, 1.5)
    assert row["output_throughput_tok_per_s"] == pytest.approx(12 * 32 / 1.5)
    assert row["e2el_p99_ms"] is None  # three batches tell no tail
