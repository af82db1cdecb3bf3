"""A night goes into a bucket and comes back on another computer, and both warehouses give the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.settings import Settings
from infra.storage import store
from infra.storage.bucket import fetch, upload_night
from nights.files import declared
from tests.emulators.s3 import KEYS, Bucket
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.deployed import ROOT
from warehouse.lake.query import ask
from warehouse.rebuild import rebuild

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

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
# What a night of this suite has here; the others are of GPUs, of calibrations, of failures, or of lm-eval.
EXPECTED = {
    "night.json",
    "leases/<lease>.json",
    "servers/<server>-<n>.log",
    "<scenario>/<repeat>/",
    "searches.json",
    "judgement.json",
    "repeats.json",
}
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


def hashes(data: Path, night: str) -> dict[str, str]:
    found = store.file_hashes(store.night_folder(data, night))
    return {name: digest for name, digest in found.items() if name not in {"uploads.json", ".swap.lock"}}


def kind_of(name: str) -> str | None:
    kind = declared(name) or declared("/".join(name.split("/")[:2]))
    return None if kind is None else kind.name


def test_every_file_of_a_night_survives_a_bucket_and_both_warehouses_answer_alike(
    house: NightFixture, bucket: Bucket, tmp_path: Path
) -> None:
    house.suite.write_text(SUITE)
    night = run_nightly(house).night
    here, there = house.data, tmp_path / "there"
    bucket.requests.clear()
    assert upload_night(Settings(), night, 30.0) == []
    assert bucket.puts() == []  # the night itself uploaded what load, judgement and report wrote

    fetch(Settings(data=there), night)
    rebuild(there)

    assert hashes(there, night) == hashes(here, night)
    assert {kind_of(name) for name in hashes(here, night)} >= EXPECTED
    questions = [path.read_text() for path in sorted((ROOT / "docs" / "how-to" / "queries").glob("*.sql"))]
    for question in (*questions, SAID, VERDICTS, FINDINGS):
        assert ask(there, question) == ask(here, question)
    assert ask(here, SAID).rows
