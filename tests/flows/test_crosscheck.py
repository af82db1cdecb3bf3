"""The meter beside another client on one load, whose error is known because it was put there."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import TRUTH_SERVER, NightFixture
from tests.flows.deployed import ROOT

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
BENCH_CLIENT = ROOT / "tests" / "emulators" / "bench_client.py"
LATE_MS = 80.0
GAP_MS = 40.0  # of the engine: on a busy host a server may be late by 5 ms, and then sends what is due at once
QUICK = ("--streams", "2", "--ttft-ms", "20", "--itl-ms", "5")


@pytest.fixture
def late(house: NightFixture) -> NightFixture:
    """A house whose `vllm` serves, and whose `vllm bench serve` says each first token came 80 ms later than it did."""
    vllm = Path(house.environment["NIGHTBENCH_VLLM_EXECUTABLE"])
    python = f'"{sys.executable}" -u'
    client = f'BENCH_LATE_MS={LATE_MS} exec {python} "{BENCH_CLIENT}" "$@"'
    engine = f'TRUTH_ITL_MS={GAP_MS} exec {python} "{TRUTH_SERVER}" "$@"'
    vllm.write_text(f'#!/bin/sh\n[ "$1" = bench ] && {{ shift 2; {client}; }}\n{engine}\n')
    empty = house.data / "empty"
    house.environment["NIGHTBENCH_VLLM_RS"] = str(empty)
    return house


def rows_of(house: NightFixture, *argv: str) -> dict[str, dict[str, float]]:
    done = house.call("crosscheck", *argv, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["client"] for row in rows} == {"vllm-bench"}
    return {row["metric"]: row for row in rows}


def test_what_a_client_adds_is_its_bias_and_is_taken_off(late: NightFixture) -> None:
    ttft = rows_of(late, *QUICK)["ttft_p50"]

    assert ttft["bias"] == pytest.approx(LATE_MS, abs=20)
    assert abs(ttft["meter_bias"]) < 20
    assert abs(ttft["left"]) < abs(ttft["difference"]) / 2


def test_on_an_engine_the_bias_is_that_of_the_same_load_against_the_truth(late: NightFixture) -> None:
    rows = rows_of(late, "--suite", str(late.suite), "--scenario", "two")

    ttft = rows["ttft_p50"]
    assert ttft["bias"] == pytest.approx(LATE_MS, abs=20)
    assert ttft["difference"] - (ttft["bias"] - ttft["meter_bias"]) == pytest.approx(ttft["left"])
    assert rows["itl_event_p50"]["meter_value"] == pytest.approx(GAP_MS, abs=GAP_MS / 2)
    assert late.leftovers() == []


def test_a_client_that_fails_is_named_with_its_own_words(house: NightFixture) -> None:
    Path(house.environment["NIGHTBENCH_VLLM_EXECUTABLE"]).write_text("#!/bin/sh\necho no bench here >&2\nexit 7\n")

    done = house.call("crosscheck", *QUICK)

    assert done.returncode == 3
    assert "vllm-bench failed with exit code 7: no bench here" in done.stderr


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--suite", "suites/local.toml"], "pass --streams for the truth server, or --suite and --scenario"),
        (["--suite", "suites/local.toml", "--scenario", "moon"], "has no scenario 'moon'; it has: single-stream"),
        (["--suite", "nowhere.toml", "--scenario", "moon"], "nowhere.toml cannot be read"),
        (["--streams", "0"], "Invalid value for '--streams'"),
    ],
)
def test_a_wrong_call_exits_2_and_says_why(house: NightFixture, argv: list[str], said: str) -> None:
    done = house.call("crosscheck", *argv)

    assert (done.returncode, said in done.stderr) == (2, True)
