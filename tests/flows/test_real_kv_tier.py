"""A tier behind the KV cache of the real vLLM on CPU: a folder, since only GPUs offload to the memory of their host."""

import json
from pathlib import Path

import pytest

from benchmarks.token_loads import connector
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.real_engine import write_scenarios
from warehouse.lake.query import run_sql

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1500),
    pytest.mark.usefixtures("calibrated", "nights_without_prefect"),
]
SCENARIOS = """
[[scenarios]]
name = "seen"
isl = 512
osl = 8
concurrency = 2
request_count = 12
repeats = 2
prompts = { seed = 1 }
"""


def test_the_real_engine_counts_what_it_finds_in_the_tier(
    house: NightFixture, quick_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", str(quick_engine))
    tier = json.dumps(connector(house.data.parent / "store"))
    write_scenarios(house.suite, SCENARIOS, "--no-enable-prefix-caching", "--kv-transfer-config", tier)

    run_nightly(house)

    wanted = "kv_offload_backend, server_kv_tier_queries, server_kv_tier_hits > 0 AS hit, kv_tier_hit_share"
    found = run_sql(house.data, f"SELECT outcome, reason, {wanted} FROM measurements ORDER BY kv_tier_hit_share").rows
    assert [tuple(row) for row in found] == [
        ("measured", None, "ExampleConnector", 6144, False, 0.0),
        ("measured", None, "ExampleConnector", 6144, True, 0.75),  # whole blocks of 128, and never the last token
    ]
    sql = "SELECT code, status FROM findings WHERE code IN ('kv_offload_idle', 'prefix_cache_contamination')"
    judged = run_sql(house.data, f"{sql} ORDER BY code, status").rows
    assert [row[1] for row in judged] == ["PASS", "PASS", "FAIL", "PASS"]  # the repeat found what nobody planned
