"""A whole night on the real llama.cpp, where `make engines` has built it: compiling takes 6 minutes of CPU time."""

import json
from pathlib import Path

import pytest

from tests.flows.conftest import ABOUT_SPEED, NightFixture
from tests.flows.real_engine import llama_server

pytestmark = [pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]
SUITE = Path(__file__).parents[2] / "suites" / "local-llama-cpp.toml"


def test_a_night_on_llama_cpp_is_measured_counted_and_audited(served: NightFixture) -> None:
    served.environment["NIGHTBENCH_LLAMA_SERVER"] = str(llama_server())
    busy = "min_requests_per_slot = 8\nmax_other_cpu_share = 1.0"  # tests run beside it
    served.suite.write_text(SUITE.read_text().replace("min_requests_per_slot = 8", busy))

    done = served.cli("run", str(served.suite))

    counts = (
        "scenario, outcome, server_prompt_tokens AS prompt, server_generation_tokens AS output, kv_cache_tokens AS kv"
    )
    facts = "engine_version_found AS version, ev_chunk_token_ratio AS events, ev_server_client_tokens_ratio AS counted"
    sql = f"SELECT {counts}, {facts} FROM measurements ORDER BY scenario"
    found = {row.pop("scenario"): row for row in json.loads(served.call("sql", sql, "--json").stdout)}
    same = {"outcome": "measured", "kv": 4096, "version": "b1-0c1e570", "events": 1.0, "counted": 1.0}
    # (measured + warm-up requests) x length, to the token, as the server itself counted them.
    assert found == {
        "more-than-its-slots": {"prompt": 36 * 64, "output": 36 * 16, **same},
        "single-stream": {"prompt": 13 * 64, "output": 13 * 32, **same},
        "two-streams": {"prompt": 18 * 64, "output": 18 * 32, **same},
    }, done.stderr
    doubts = json.loads(
        served.call("sql", "SELECT DISTINCT code FROM findings WHERE severity = 'critical'", "--json").stdout
    )
    assert {row["code"] for row in doubts} <= ABOUT_SPEED
    lacking = "SELECT DISTINCT code FROM findings WHERE status = 'NOT-CHECKABLE' AND severity = 'warning'"
    assert json.loads(served.call("sql", lacking, "--json").stdout) == []  # what it does not count is not required
    assert "warning: the canary" not in done.stderr  # llama.cpp's server has no Python for one
    assert served.leftovers() == []
