"""Embeddings of the real vLLM on CPU, whose small generated model is given a pooling runner."""

from pathlib import Path

import pytest

from tests.flows.conftest import ABOUT_SPEED, NightFixture, run_nightly
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SUITE = """
name = "vectors"
repeats = 1
ready_timeout_s = 600
run_timeout_s = 600

[machine]
kind = "local"

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 2048
flags = ["--dtype", "bfloat16", "--enforce-eager", "--no-enable-prefix-caching", "--runner", "pooling"]
environment = { VLLM_CPU_KVCACHE_SPACE = "1", OMP_NUM_THREADS = "1", TORCHDYNAMO_DISABLE = "1" }

[quality]
min_duration_s = 0.1
min_requests_per_slot = 1
max_other_cpu_share = 1.0

[[scenarios]]
name = "vectors"
task = "embed"
isl = 32
concurrency = 2
request_count = 1000
warmup_count = 4
"""


def test_every_prompt_token_is_counted_on_the_real_engine(
    house: NightFixture, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick_engine))
    house.suite.write_text(SUITE)

    run_nightly(house)

    wanted = "outcome, reason, completed, total_input_tokens, server_prompt_tokens, embedding_dimensions"
    (row,) = run_sql(house.data, f"SELECT {wanted}, ttft_p50_ms, total_output_tokens FROM measurements").rows
    assert tuple(row) == ("measured", None, 1000, 32_000, 32_128, 64, None, None)
    doubts = run_sql(house.data, "SELECT DISTINCT code FROM findings WHERE status IN ('WARN', 'FAIL')").rows
    assert {row[0] for row in doubts} <= ABOUT_SPEED
