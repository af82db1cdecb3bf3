"""Traces, agent sessions and planned cache hits on the real engine: every token and every hit as planned."""

import json
import random
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
TRACES = Path(__file__).parents[1] / "data" / "traces"
REQUESTS = 1000
BLOCK = 512
SCENARIOS = """
[[scenarios]]
name = "mooncake"
isl = 2048
osl = 32
arrivals = "trace"
trace = "thousand.jsonl"
trace_format = "mooncake"
request_count = 1000

[[scenarios]]
name = "azure"
isl = 512
osl = 32
arrivals = "trace"
trace = "azure.csv"
trace_format = "azure"
trace_speed = 0.5
request_count = 24

[[scenarios]]
name = "agents"
isl = 2048
osl = 32
arrivals = "sessions"
concurrency = 3
trace = "agents.jsonl"
trace_format = "aiperf"
request_count = 24

[[scenarios]]
name = "weka"
isl = 1024
osl = 32
arrivals = "sessions"
concurrency = 2
trace = "weka.jsonl"
trace_format = "weka"
request_count = 7

[[scenarios]]
name = "primed"
isl = 512
osl = 8
concurrency = 2
warmup_count = 4
request_count = 24
prompts = { kind = "shared-prefix", groups = 4, prefix_tokens = 384 }

[[scenarios]]
name = "warm"
isl = 512
osl = 8
concurrency = 2
request_count = 24
repeats = 2
prompts = { seed = 1 }
"""


def thousand() -> str:
    """A thousand requests in seven families that share a first block of 512 tokens, about 25 a second."""
    draw = random.Random(32)
    lines, at_ms = [], 0
    for number in range(REQUESTS):
        own = draw.randrange(8, 200)
        row = {"timestamp": at_ms, "input_length": BLOCK + own, "output_length": draw.randrange(2, 9)}
        lines.append(json.dumps(row | {"hash_ids": [draw.randrange(7), 100 + number]}))
        at_ms += draw.randrange(0, 80)
    return "\n".join(lines) + "\n"


def test_every_token_and_hit_of_a_replay_is_as_planned_on_the_real_engine(
    house: NightFixture, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", engine)
    for name in ("azure.csv", "agents.jsonl", "weka.jsonl"):
        (house.suite.parent / name).write_text((TRACES / name).read_text())
    (house.suite.parent / "thousand.jsonl").write_text(thousand())
    write_scenarios(house.suite, SCENARIOS, "--enable-prompt-tokens-details")

    run_nightly(house)

    counts = "completed, ev_isl_ratio AS isl, ev_osl_ratio AS osl, ev_server_client_prompt_diff AS prompt_diff"
    cache = "planned_prefix_cache_hits AS planned, server_prefix_cache_hits AS hits, sessions_done"
    found = run_sql(house.data, f"SELECT scenario, repeat, {counts}, {cache} FROM measurements").dicts()
    good = {row["scenario"]: row for row in found if row["scenario"] != "warm"}
    assert {name: row["completed"] for name, row in good.items()} == {
        "mooncake": REQUESTS, "azure": 24, "agents": 24, "weka": 7, "primed": 24
    }  # fmt: skip
    assert {(row["isl"], row["osl"], row["prompt_diff"]) for row in found} == {(1.0, 1.0, 0.0)}
    assert {name: row["hits"] for name, row in good.items()} == {name: row["planned"] for name, row in good.items()}
    assert good["mooncake"]["hits"] == (REQUESTS - 7) * BLOCK
    assert (good["agents"]["sessions_done"], good["weka"]["sessions_done"]) == (6, 3)
    doubts = run_sql(
        house.data,
        "SELECT DISTINCT scenario, code FROM findings JOIN measurements USING (run_id)"
        " WHERE severity <> 'info' AND code NOT IN ('not_checkable')",
    ).dicts()
    codes = {(row["scenario"], row["code"]) for row in doubts if row["code"] not in ABOUT_SPEED}
    assert codes == {("warm", "prefix_cache_contamination")}
    (session,) = run_sql(house.data, "SELECT count(*) AS n, sum(turns_done) AS turns FROM sessions").dicts()
    assert (session["n"], session["turns"]) == (9, 31)
