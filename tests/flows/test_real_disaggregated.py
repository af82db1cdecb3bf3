"""Two servers of the real vLLM on CPU: one computes the prompts, and hands their KV cache over in a folder."""

import json
from pathlib import Path

import pytest

from tests.flows.conftest import HEALTHY, NightFixture, run_nightly
from tests.flows.real_engine import write_scenarios
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SCENARIOS = """
[[variants]]
name = "two"
disaggregated = {{ connector = "ExampleConnector", connector_config = {{ shared_storage_path = {store} }} }}

[[scenarios]]
name = "chat"
isl = 512
osl = 8
concurrency = 2
request_count = 12
warmup_count = 2
"""


def test_prompts_are_computed_by_one_server_and_answers_by_another(
    house: NightFixture, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick_engine))
    scenarios = SCENARIOS.format(store=json.dumps(str(house.data.parent / "store")))
    write_scenarios(house.suite, scenarios, "--no-enable-prefix-caching")

    run_nightly(house)

    (row,) = run_sql(house.data, "SELECT * FROM measurements").dicts()
    assert row["verdict"] in HEALTHY, row
    assert (row["kv_connector"], row["completed"], row["failed"]) == ("ExampleConnector", 12, 0)
    # 14 prompts of 512 tokens with the warm-up; blocks have 128, and the last token is always computed.
    assert (row["server_prefill_prompt_tokens"], row["server_kv_received_tokens"]) == (14 * 512, 14 * 384)
    assert row["kv_computed_again_share"] == 0.0
    assert 0 < row["prefill_mean_ms"] < row["ttft_mean_ms"]
    assert row["handover_mean_ms"] > 0
    sql = "SELECT code FROM findings WHERE status = 'PASS'"
    passed = {str(code) for (code,) in run_sql(house.data, sql).rows}
    assert {"prefill_bypassed", "kv_computed_again", "token_count_drift", "prompt_count_drift"} <= passed
