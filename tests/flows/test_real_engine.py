"""A whole night with the real vLLM on CPU: the main job, as `make run` does it, and the second load driver."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import ABOUT_SPEED, NightFixture

pytestmark = [pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
SMALLER = {
    "request_count = 48": "request_count = 40",
    "repeats = 2": "repeats = 1",
    "osl = 64\nconcurrency = 4": "osl = 32\nconcurrency = 4",
}


@pytest.fixture(scope="module")
def engine() -> str:
    """The engine's environment, built by the project itself."""
    argv = [sys.executable, "-m", "infra.engines.venv"]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=1200)
    return built.stdout.strip()


@pytest.fixture
def real(served: NightFixture, engine: str) -> Iterator[NightFixture]:
    served.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = engine
    text = (ROOT / "suites" / "local.toml").read_text()
    for long, short in SMALLER.items():
        assert long in text
        text = text.replace(long, short)
    served.suite.write_text(text)
    yield served
    assert served.leftovers() == []


def results(house: NightFixture, columns: str) -> list[dict[str, object]]:
    asked = house.cli("sql", f"SELECT {columns} FROM measurements ORDER BY scenario", "--json")
    found: list[dict[str, object]] = json.loads(asked.stdout)
    return found


def test_a_night_on_the_real_engine_is_measured_counted_and_audited(real: NightFixture) -> None:
    done = real.cli("run", str(real.suite))

    rows = results(real, "scenario, outcome, engine_version_found, completed, server_generation_tokens, ev_isl_ratio")
    assert [row["scenario"] for row in rows] == ["four-streams", "poisson", "single-stream"], done.stderr
    assert {row["outcome"] for row in rows} == {"measured"}
    assert {str(row["engine_version_found"]).split("+")[0] for row in rows} == {"0.32.0"}
    # (measured + warm-up requests) x output length, to the token, as the server itself counted them.
    assert [row["server_generation_tokens"] for row in rows] == [44 * 32, 32 * 32, 26 * 64]
    assert {row["ev_isl_ratio"] for row in rows} == {1.0}
    # The same questions before and after the load: an engine that is deterministic when it is alone answers alike.
    answers = "logprob_mean_before, logprob_mean_after, greedy_fingerprint_before, greedy_fingerprint_after"
    for row in results(real, f"{answers}, logprob_token_count"):
        assert row["logprob_mean_before"] == row["logprob_mean_after"] is not None
        assert row["greedy_fingerprint_before"] == row["greedy_fingerprint_after"] is not None
        assert row["logprob_token_count"] == 127  # a vocabulary without English words: the passage is cut to 128
    asked = real.cli("sql", "SELECT DISTINCT code FROM findings WHERE severity <> 'info'", "--json")
    assert {row["code"] for row in json.loads(asked.stdout)} <= ABOUT_SPEED


def test_vllm_bench_drives_the_same_night(real: NightFixture) -> None:
    text = real.suite.read_text()
    real.suite.write_text(text.replace("warmup_count = 2", 'warmup_count = 2\ndriver = "vllm-bench"', 1))

    real.cli("run", str(real.suite), "--poc")

    columns = (
        "driver, driver_version, outcome, completed, ev_osl_ratio, ev_server_client_tokens_ratio, client_lag_p99_ms"
    )
    assert results(real, columns) == [
        {
            "driver": "vllm-bench",
            "driver_version": "0.32.0",
            "outcome": "measured",
            "completed": 24,
            "ev_osl_ratio": 1.0,
            "ev_server_client_tokens_ratio": 1.0,
            "client_lag_p99_ms": None,
        }
    ]


def test_an_engine_told_nonsense_says_so_in_its_own_words(real: NightFixture) -> None:
    text = real.suite.read_text()
    real.suite.write_text(text.replace("max_model_len = 4096", "max_model_len = 65536"))

    done = real.cli("run", str(real.suite), "--poc")

    assert done.returncode == 1
    assert "User-specified max_model_len (65536) is greater than" in str(results(real, "reason"))


def test_the_engines_environment_is_never_built_twice(engine: str) -> None:
    argv = [sys.executable, "-m", "infra.engines.venv"]

    again = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60, env=dict(os.environ))

    assert again.stdout.strip() == engine
    assert "building" not in again.stderr
