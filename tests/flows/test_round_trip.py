"""A night goes into a bucket and comes back on another computer, and both warehouses give the same answers."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import HostError
from bench.record import CalibratedLoad, Calibration, NightRecord
from flows.nightly import measure_again
from infra.agent.results_there import ResultsThere
from infra.engines.canary import CanaryRequest
from infra.ledger.lease import Lease
from infra.loadgen.calibration import table_of
from infra.loadgen.night_calibration import calibrate_night
from infra.reporting import Say, silent
from infra.settings import Settings
from infra.storage import store
from infra.storage.bucket import fetch, upload_night
from nights.files import FILES, LEASE_PLANS, TUNING, declared
from tests.bench.quality.test_lm_eval import RESULTS
from tests.emulators.s3 import KEYS, Bucket
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.deployed import ROOT
from tests.infra.agent.test_results_there import LyingHost
from warehouse.lake.query import ask
from warehouse.rebuild import rebuild

pytestmark = pytest.mark.usefixtures("nights_without_prefect")

SUITE = """
name = "round-trip"
repeats = "plan"
ready_timeout_s = 60
request_timeout_s = 20
run_timeout_s = 60

[model]
name = "tiny"
source = "generated:tiny?seed=0"

[engine]
version = "0.32.0"
max_model_len = 4096
flags = ["--no-enable-prefix-caching", "--enable-per-request-metrics"]
environment = { TRUTH_TTFT_MS = "20", TRUTH_ITL_MS = "5" }

[quality]
min_duration_s = 0.2
max_other_cpu_share = 1.0

[quality.lm_eval]
tasks = ["nightbench_colours"]

[profile]
scenarios = ["one"]
requests = 2

[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 12

[[sweeps]]
name = "users"
isl = 16
osl = 4
concurrency_max = 3
probes_max = 3
"""
# An engine whose first start fails and is repeated, and a harness that has its scores at once.
ENGINE = """#!/bin/sh
[ -e {flag} ] || {{ touch {flag}; echo "Error in memory profiling. Initial free memory 1"; exit 1; }}
exec {engine} "$@"
"""
LM_EVAL = """#!/bin/sh
while [ "$1" != --output_path ]; do shift; done
mkdir -p "$(dirname "$2")" && cp {results} "${{2%.json}}_2026.json"
"""
SAID = "SELECT night, series, metric, judgement FROM series_verdicts ORDER BY ALL"
VERDICTS = "SELECT night, scenario, repeat, verdict FROM measurements ORDER BY ALL"
FINDINGS = "SELECT run_id, code, status, message FROM findings ORDER BY ALL"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with Bucket() as running:
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NIGHTBENCH_S3_BUCKET", running.name)
        monkeypatch.setenv("NIGHTBENCH_S3_ENDPOINT", running.endpoint)
        yield running


def write_program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def eventful(house: NightFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NightFixture:
    """A house whose night has every file that a night may have: much goes wrong in it, and every run is measured."""
    engine = ENGINE.format(flag=tmp_path / "started", engine=house.environment["NIGHTBENCH_VLLM_EXECUTABLE"])
    monkeypatch.setenv("NIGHTBENCH_VLLM_EXECUTABLE", write_program(tmp_path / "unsteady-vllm", engine))
    monkeypatch.setenv("NIGHTBENCH_LM_EVAL", write_program(tmp_path / "lm-eval", LM_EVAL.format(results=RESULTS)))
    monkeypatch.setattr("infra.agent.operations.calibrate_night", calibrate_after_another_host)
    monkeypatch.setattr("infra.loadgen.night_calibration.calibrate", lambda *_cells, **_named: ())
    monkeypatch.setattr("flows.nightly.measure_again", end_badly)
    house.suite.write_text(SUITE)
    return house


def calibrate_after_another_host(data: Path, night: NightRecord, cache: Path, say: Say) -> Calibration:
    """Calibrate a night that began on another host, without a measured cell; the client is taken to be fit."""
    former = table_of((), time.monotonic()).model_copy(update={"hostname": "elsewhere", "calibration_id": "elsewhere"})
    store.write_json(store.calibration_file(data, night.night), former)
    fit = CalibratedLoad(streams=1000, stream_tok_per_s=1e6, workers=1)
    return calibrate_night(data, night, cache, say).model_copy(update={"loads": (fit,)})


def end_badly(settings: Settings, night: NightRecord, lease: Lease, canary: CanaryRequest) -> None:
    """Measure the machine again, let one of another lease offer what is not its own, and lose this one."""
    measure_again(settings, night, lease, canary)
    ResultsThere("there", settings.data, night.night, None, "another").collect(LyingHost("f 2 forged"), silent)
    raise HostError("the machine is gone")


def hashes(data: Path, night: str) -> dict[str, str]:
    found = store.file_hashes(store.night_folder(data, night))
    return {name: digest for name, digest in found.items() if name not in {"uploads.json", ".swap.lock"}}


def assert_each_is_of_its_model(folder: Path) -> None:
    """Each JSON file of a night is a value of the model that the table declares."""
    for path in (*folder.glob("*.json"), *folder.glob("*/*.json"), *folder.glob("*/*/record.json")):
        name = path.relative_to(folder)
        kind = declared(str(name.parent if name.name == "record.json" else name))
        assert kind is not None
        assert kind.model is not None
        kind.model.model_validate_json(path.read_bytes())


def kind_of(name: str) -> str | None:
    kind = declared(name) or declared("/".join(name.split("/")[:2]))
    return None if kind is None else kind.name


def test_every_file_of_a_night_survives_a_bucket_and_both_warehouses_answer_alike(
    eventful: NightFixture, bucket: Bucket, tmp_path: Path
) -> None:
    here, there = eventful.data, tmp_path / "there"
    with pytest.raises(HostError, match="the machine is gone"):
        run_nightly(eventful)
    (night,) = store.nights(here)
    bucket.requests.clear()
    assert upload_night(Settings(), night, 30.0) == []
    assert bucket.puts() == []  # the night itself uploaded what load, judgement and report wrote

    fetch(Settings(data=there), night)
    rebuild(there)

    assert hashes(there, night) == hashes(here, night)
    kept = {kind.name for kind in FILES if kind.is_fetched} - {
        TUNING.name,  # of a night that searches flags, and no load
        LEASE_PLANS.name,  # of a night over several machines: tests/flows/test_spread_workers.py
    }
    assert {kind_of(name) for name in hashes(here, night)} == kept
    assert_each_is_of_its_model(store.night_folder(there, night))
    questions = [path.read_text() for path in sorted((ROOT / "docs" / "how-to" / "queries").glob("*.sql"))]
    for question in (*questions, SAID, VERDICTS, FINDINGS):
        assert ask(there, question) == ask(here, question)
    assert ask(here, SAID).rows
