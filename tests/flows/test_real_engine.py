"""Nights with the real vLLM on CPU: one that does all there is to do with a running server, and three short ones."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from infra.storage.store import is_whole
from tests.flows.conftest import ABOUT_SPEED, NightFixture, make_house
from tests.flows.real_engine import with_python
from tests.flows.renting import renting
from warehouse.schema.start_columns import PHASES

pytestmark = [pytest.mark.e2e, pytest.mark.prefect, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
LOCAL = ROOT / "suites" / "local.toml"
SMALLER = {
    "request_count = 40": "request_count = 12",
    "request_count = 30": "request_count = 12",
    "request_count = 120": "request_count = 40",
    "half_width_max = 0.10\n": "",  # no repeats are added
    "load_s = 2.7\n": "",
    "load_s = 2.5\n": "",
    "load_s = 4.0\n": "",
    "repeats = 7": "repeats = 1",
    "osl = 64\nconcurrency = 1": "osl = 32\nconcurrency = 1",
    "osl = 64\nconcurrency = 4": "osl = 16\nconcurrency = 4",
    "osl = 32\narrivals": "osl = 16\narrivals",
    "request_rate_per_s = 3.0": "request_rate_per_s = 2.0",
}
SHORT = {
    "half_width_max = 0.10\n": "",
    "repeats = 7": "repeats = 3",
    "isl = 128\nosl = 64\nconcurrency = 1": "isl = 64\nosl = 16\nconcurrency = 1",
    "request_count = 40": "request_count = 10",
}
QUESTIONS = f"""
[quality.lm_eval]
tasks = ["nightbench_colours"]
folder = "{ROOT / "tests" / "data" / "lm-eval" / "tasks"}"
limit = 5
timeout_s = 600

"""
BY_VLLM_BENCH = """
[[scenarios]]
name = "by-vllm-bench"
isl = 128
osl = 16
concurrency = 1
request_count = 12
warmup_count = 2
driver = "vllm-bench"
"""


def local_suite(changes: dict[str, str]) -> str:
    text = LOCAL.read_text()
    for long, short in changes.items():
        assert long in text
        text = text.replace(long, short)
    return text


def rows(house: NightFixture, sql: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(house.call("sql", sql, "--json").stdout)
    return found


@dataclass(frozen=True)
class Finished:
    """What a whole night left."""

    house: NightFixture
    ran: "subprocess.CompletedProcess[str]"
    leftovers: list[str]


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, engine: str, quick_engine: Path, prefect_home: Path, server_url: str
) -> Finished:
    """One night for all tests that read what it left: both drivers, every form of load, and lm-eval afterwards."""
    house = make_house(tmp_path_factory.mktemp("real"), prefect_home)
    house.environment["PREFECT_API_URL"] = server_url
    house.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = str(with_python(quick_engine, engine, house.data.parent / "bin"))
    head, scenarios, rest = local_suite(SMALLER).partition("[[scenarios]]\n")
    house.suite.write_text(head + QUESTIONS.lstrip() + scenarios + rest + BY_VLLM_BENCH)
    ran = house.cli("run", str(house.suite))
    return Finished(house, ran, house.leftovers())


@pytest.fixture
def real(served: NightFixture, engine: str) -> Iterator[NightFixture]:
    """A house whose nights start the engine as users do."""
    served.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = engine
    served.suite.write_text(local_suite(SHORT))
    yield served
    assert served.leftovers() == []


def test_a_night_on_the_real_engine_ends_well_and_leaves_nothing(finished: Finished) -> None:
    assert finished.ran.returncode == 0, finished.ran.stderr
    assert finished.leftovers == []


def test_a_night_on_the_real_engine_is_measured_counted_and_audited(finished: Finished) -> None:
    house = finished.house
    counts = "completed, server_generation_tokens, ev_isl_ratio"
    found = rows(
        house,
        f"SELECT scenario, outcome, engine_version_found, {counts} FROM measurements WHERE driver = 'meter'"
        " ORDER BY scenario",
    )
    assert [row["scenario"] for row in found] == ["four-streams", "poisson", "single-stream"], finished.ran.stderr
    assert {row["outcome"] for row in found} == {"measured"}
    assert {str(row["engine_version_found"]).split("+")[0] for row in found} == {"0.32.0"}
    # (measured + warm-up requests) x output length, to the token, as the server itself counted them.
    assert [row["server_generation_tokens"] for row in found] == [44 * 16, 13 * 16, 13 * 32]
    assert {row["ev_isl_ratio"] for row in found} == {1.0}
    # The same questions before and after the load: an engine that is deterministic when it is alone answers alike.
    answers = "logprob_mean_before, logprob_mean_after, greedy_fingerprint_before, greedy_fingerprint_after"
    asked = rows(house, f"SELECT {answers}, logprob_token_count FROM measurements WHERE driver = 'meter'")
    assert len(asked) == 3
    for row in asked:
        assert row["logprob_mean_before"] == row["logprob_mean_after"] is not None
        assert row["greedy_fingerprint_before"] == row["greedy_fingerprint_after"] is not None
        assert row["logprob_token_count"] == 127  # a vocabulary without English words: the passage is cut to 128
    by_meter = "run_id IN (SELECT run_id FROM measurements WHERE driver = 'meter')"
    doubts = rows(house, f"SELECT DISTINCT code FROM findings WHERE severity <> 'info' AND {by_meter}")
    assert {row["code"] for row in doubts} <= ABOUT_SPEED
    # The engine's own times of its start fit into ours, phase by phase; nothing was compiled or captured.
    (start,) = rows(house, "FROM server_starts WHERE runs >= 3")
    known = [f"start_{phase}_s" for phase in ("import", "weights", "device", "warmup", "first_answer")]
    assert {name for name in PHASES if start[name] is not None} == set(known)
    assert (start["compile_cache"], start["start_not_read"]) == (None, None)
    assert -1 < float(str(start["start_other_s"])) < float(str(start["cold_start_s"]))


def test_torch_in_the_engines_own_environment_measures_the_machine_before_and_after(finished: Finished) -> None:
    measured = "count(value) FILTER (unit = 'TFLOP/s') AS products, count(peak) AS peaks, max(torch_version) AS torch"
    canaries = rows(finished.house, f"SELECT position, {measured} FROM canary GROUP BY ALL ORDER BY position DESC")

    whole = {"products": 3, "peaks": 0, "torch": "2.13.0+cpu"}
    assert canaries == [{"position": position, **whole} for position in ("before", "after")]


def test_vllm_bench_drives_the_same_night(finished: Finished) -> None:
    columns = (
        "driver, driver_version, outcome, completed, ev_osl_ratio, ev_server_client_tokens_ratio, client_lag_p99_ms"
    )
    assert rows(finished.house, f"SELECT {columns} FROM measurements WHERE driver = 'vllm-bench'") == [
        {
            "driver": "vllm-bench",
            "driver_version": "0.32.0",
            "outcome": "measured",
            "completed": 12,
            "ev_osl_ratio": 1.0,
            "ev_server_client_tokens_ratio": 1.0,
            "client_lag_p99_ms": None,
        }
    ]


def test_a_server_is_asked_after_its_loads(finished: Finished) -> None:
    house = finished.house
    acc, norm = rows(house, "SELECT * FROM quality_scores ORDER BY metric")
    assert [acc["metric"], norm["metric"]] == ["acc", "acc_norm"]
    for score in (acc, norm):
        assert score["value"] in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        assert (score["outcome"], score["sample_count"], score["sample_total"]) == ("measured", 5, 6)
        assert (score["task_version"], score["harness_version"]) == ("1.0", "0.4.13")
    measured = rows(house, "SELECT * FROM measurements")
    assert {row["outcome"] for row in measured} == {"measured"}
    assert {row["quality_id"] for row in measured} == {acc["quality_id"]}
    assert acc["quality_id"] is not None
    assert max(str(row["ended_at"]) for row in measured) < str(acc["started_at"])
    (folder,) = house.data.glob("runs/*/lm-eval-*/0")
    assert is_whole(folder)
    assert {"nightbench_colours.json", "nightbench_colours.log"} <= {path.name for path in folder.iterdir()}
    (stage,) = rows(house, "SELECT stage FROM stages WHERE stage = 'lm-eval'")
    assert stage


@pytest.mark.matrix
def test_the_real_engine_runs_on_a_rented_machine_as_the_local_suite_starts_it(
    real: NightFixture, engine: str, tmp_path: Path
) -> None:
    with renting(tmp_path, real) as account:
        account.install(engine)
        real.suite.write_text(local_suite(SHORT))
        sizes = account.emulator.state.sizes
        sizes["local"] = replace(sizes["s-2vcpu-4gb"], slug="local", regions=("atl1",))  # what that suite asks for

        done = real.cli("run", str(real.suite), "--target", "digitalocean", "--poc")

        (row,) = rows(real, "SELECT scenario, outcome, ev_isl_ratio, engine_version_found FROM measurements")
        assert (row["scenario"], row["outcome"], row["ev_isl_ratio"]) == ("single-stream", "measured", 1.0), done.stderr
        assert str(row["engine_version_found"]).split("+")[0] == "0.32.0"
        account.judge()


@pytest.mark.matrix
def test_an_engine_that_runs_out_of_memory_says_so_in_its_own_words_and_climbs_the_ladder(
    real: NightFixture, quick_engine: Path
) -> None:
    real.environment["NIGHTBENCH_VLLM_EXECUTABLE"] = str(quick_engine)
    text = real.suite.read_text().replace("max_model_len = 4096", "max_model_len = 16384")
    text = text.replace('VLLM_CPU_KVCACHE_SPACE = "1", ', "")
    text = text.replace('flags = ["', 'flags = ["--kv-cache-memory-bytes", "67108864", "')
    real.suite.write_text(text + "\n[[ladder]]\nkv_cache_memory_bytes = 335544320\n")

    done = real.cli("run", str(real.suite), "--poc")

    columns = "scenario_id, fallback_of, rung, outcome, failure, reason"
    asked, climbed = rows(real, f"SELECT {columns} FROM measurements ORDER BY rung")
    assert (asked["rung"], asked["outcome"], asked["failure"]) == (0, "failed", "oom_kv_len"), done.stderr
    assert "To serve at least one request with the model's max seq len (16384)" in str(asked["reason"])
    assert (climbed["rung"], climbed["outcome"], climbed["reason"]) == (1, "measured", None)
    assert climbed["fallback_of"] == asked["scenario_id"] != climbed["scenario_id"]


def test_the_engines_environment_is_never_built_twice(engine: str) -> None:
    argv = [sys.executable, "-m", "infra.engines.venv"]

    again = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300, env=dict(os.environ)
    )

    assert again.stdout.strip() == engine
    assert "building" not in again.stderr
