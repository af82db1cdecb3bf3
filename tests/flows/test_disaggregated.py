"""A night whose engine is two servers, beside the same engine as one; a prefill whose blocks stay behind is found."""

import pytest

from tests.flows.conftest import HEALTHY, NightFixture, run_nightly
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")
SUITE = """
name = "split"
repeats = 1
ready_timeout_s = 60

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = [
    "--no-enable-prefix-caching", "--enable-per-request-metrics", "--enable-prompt-tokens-details",
    "--block-size", "16",
]
environment = {{ TRUTH_FAULT = "{fault}", TRUTH_TTFT_MS = "60", TRUTH_ITL_MS = "5" }}

[quality]
min_duration_s = 0.2
min_requests_per_slot = 5
max_other_cpu_share = 1.0

[[variants]]
name = "one"

[[variants]]
name = "two"
disaggregated = {{ decode_flags = ["--max-num-seqs", "64"] }}

[[scenarios]]
name = "chat"
isl = 40
osl = 8
concurrency = 2
request_count = 12
warmup_count = 2
"""


def _measure(house: NightFixture, fault: str = "") -> list[dict[str, object]]:
    house.suite.write_text(SUITE.format(fault=fault))
    run_nightly(house)
    return run_sql(house.data, "SELECT * FROM measurements ORDER BY scenario").dicts()


def _doubts(house: NightFixture, run_id: object) -> dict[str, str]:
    sql = f"SELECT code, status FROM findings WHERE run_id = '{run_id}' AND status <> 'NOT-CHECKABLE'"
    return {str(code): str(status) for code, status in run_sql(house.data, sql).rows}


def test_prefill_and_decode_on_servers_of_their_own_are_measured_beside_one_server(house: NightFixture) -> None:
    one, two = _measure(house)

    assert {one["verdict"], two["verdict"]} <= HEALTHY
    assert (one["kv_connector"], two["kv_connector"]) == (None, "NixlConnector")
    assert two["decode_flags"] == ["--max-num-seqs", "64"]
    # 14 requests with the warm-up: 32 of 40 tokens are whole blocks.
    assert (two["server_prefill_prompt_tokens"], two["server_kv_received_tokens"]) == (560, 448)
    assert (two["kv_computed_again_share"], two["kv_transfer_mean_ms"]) == (0.0, None)
    assert isinstance(two["prefill_mean_ms"], float)
    assert isinstance(two["handover_mean_ms"], float)
    assert (two["prefill_mean_ms"] >= 60, two["handover_mean_ms"] >= 5) == (True, True)
    found = _doubts(house, two["run_id"])
    about = ("prefill_bypassed", "kv_computed_again", "prefix_cache_contamination", "cached_tokens_drift")
    assert {code: found[code] for code in about} == dict.fromkeys(about, "PASS")
    assert "prefill_bypassed" not in _doubts(house, one["run_id"])
    assert house.leftovers() == []


def test_a_decode_server_that_computes_the_prompts_itself_is_found(house: NightFixture) -> None:
    _one, two = _measure(house, "keeps_kv")

    assert two["verdict"] == "rejected"
    assert two["kv_computed_again_share"] == 0.8
    found = _doubts(house, two["run_id"])
    assert (found["kv_computed_again"], found["prefill_bypassed"]) == ("FAIL", "PASS")
