"""Embeddings of the real vLLM on CPU, whose small generated model is given a pooling runner."""

from pathlib import Path

import pytest

from tests.flows.conftest import ABOUT_SPEED, NightFixture, run_nightly
from tests.flows.real_engine import write_scenarios
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SCENARIOS = """
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
    write_scenarios(house.suite, SCENARIOS, "--no-enable-prefix-caching", "--runner", "pooling")

    run_nightly(house)

    wanted = "outcome, reason, completed, total_input_tokens, server_prompt_tokens, embedding_dimensions"
    (row,) = run_sql(house.data, f"SELECT {wanted}, ttft_p50_ms, total_output_tokens FROM measurements").rows
    assert tuple(row) == ("measured", None, 1000, 32_000, 32_128, 64, None, None)
    doubts = run_sql(house.data, "SELECT DISTINCT code FROM findings WHERE status IN ('WARN', 'FAIL')").rows
    assert {row[0] for row in doubts} <= ABOUT_SPEED
