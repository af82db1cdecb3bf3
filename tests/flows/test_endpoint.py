"""Nights on a server that already runs: nothing of it is ours, and what it does not say is NULL with a reason."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
import trustme

from bench.errors import SuiteError, UsageError
from bench.record import RunRecord
from flows.nightly import benchmark_machine
from infra.ledger.ledger import Ledger
from infra.loadgen.suite_file import make_night
from infra.storage import store
from tests.flows.conftest import NightFixture
from tests.meter.conftest import StartTruth, start_truth
from tests.planted import SECRETS, found_below, plant
from warehouse.lake.query import run_sql
from warehouse.load import load_night

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

KEY = "NIGHTBENCH_ENDPOINT_API_KEY"
SUITE = """
name = "endpoint"
repeats = 1
request_timeout_s = 30
run_timeout_s = 60

[model]
name = "small"
source = "hf:meta-llama/Llama-3.1-8B-Instruct"

[engine]
name = "endpoint"
version = "as found"
max_model_len = 4096

[quality]
min_duration_s = 0.1
min_requests_per_slot = 10
max_other_cpu_share = 1.0

[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 12
warmup_count = 1
prompts = {{ form = "{form}" }}

[endpoint]
{known}
"""
PRICED = """
provider = "Example"
gpu = "MI300X"
gpu_count = 1
usd_per_mtok_input = 1.0
usd_per_mtok_output = 2.0
"""


__all__ = ["start_truth"]  # a fixture


def write_suite(house: NightFixture, form: str = "tokens", known: str = "") -> Path:
    house.suite.write_text(SUITE.format(form=form, known=known))
    return house.suite


def run_night(house: NightFixture, target: str, suite: Path) -> str:
    """A night on this target, which is not loaded; its name."""
    night = make_night(suite, target, poc=False)
    store.write_json(store.night_file(house.data, night.night), night)
    benchmark_machine(night, uuid4())
    return night.night


def measure(house: NightFixture, target: str, suite: Path) -> str:
    """A night on this target, loaded; its name."""
    night = run_night(house, target, suite)
    load_night(house.data, night)
    return night


def record_of(house: NightFixture, night: str) -> tuple[RunRecord, Path]:
    (path,) = (house.data / "runs" / night).glob("*/*/record.json")
    return RunRecord.model_validate_json(path.read_bytes()), path.parent


def row_of(house: NightFixture, *columns: str) -> tuple[object, ...]:
    (row,) = run_sql(house.data, f"SELECT {', '.join(columns)} FROM measurements").rows
    return tuple(row)


def findings_of(house: NightFixture) -> dict[object, object]:
    return dict(tuple(row) for row in run_sql(house.data, "SELECT code, status FROM findings").rows)


def test_a_night_measures_a_server_of_somebody_else_and_leaves_it_running(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth()

    night = measure(house, f"{truth.url}/", write_suite(house))

    record, folder = record_of(house, night)
    assert (record.outcome, record.reason) == ("measured", None)
    assert record.asked.machine.kind == f"endpoint {truth.url.removeprefix('http://')}"
    assert record.weights is None
    assert record.endpoint is not None
    assert record.server is not None
    found = (record.server.engine_version, record.server.pid, record.server.cold_start_s, record.server.parallel)
    assert found == ("vllm 0.32.0", None, None, None)
    assert (record.endpoint.forms, record.endpoint.takes) == (
        ("tokens", "text", "chat"),
        ("ignore_eos", "return_token_ids"),
    )
    assert record.host is not None
    assert record.host.gpus == ()
    assert record.host_use is not None
    assert "not ours" in record.host_use.unknown["gpu_telemetry"]
    assert (folder / "metrics-after.txt").exists()
    codes = findings_of(house)
    assert {codes["request_count_drift"], codes["prompt_count_drift"]} == {"PASS"}
    assert row_of(house, "usd_per_hour", "usd_per_mtok_output", "cold_start_s", "model_sha256") == (None,) * 4
    assert truth.process.poll() is None
    assert [lease.state for lease in Ledger(house.data / "ledger.sqlite").leases()] == ["released"]


def test_a_hosted_api_behind_tls_is_measured_by_its_key_and_what_it_lacks_is_null(
    house: NightFixture, start_truth: StartTruth, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, KEY)
    authority, pem, ca = trustme.CA(), tmp_path / "server.pem", tmp_path / "ca.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    authority.cert_pem.write_to_path(ca)
    truth = start_truth("hosted,proxied", TRUTH_TLS=str(pem), TRUTH_API_KEY=SECRETS[KEY])

    night = measure(house, truth.url, write_suite(house, "chat", f'{PRICED}\nca_file = "{ca}"'))

    record, folder = record_of(house, night)
    assert (record.outcome, record.reason) == ("measured", None)
    found = record.endpoint
    assert found is not None
    assert (found.forms, found.takes, found.between) == (("chat",), (), {"via": "1.1 front"})
    assert set(found.unknown) == {
        "start, log and telemetry of the server",
        "metrics",
        "version",
        "planned output length",
    }
    assert not (folder / "metrics-before.txt").exists()
    assert json.loads((folder / "load" / "meter.json").read_text())["network"]["tls"]["version"] == "TLSv1.3"
    codes = findings_of(house)
    assert {codes["request_count_drift"], codes["engine_version_conflict"]} == {"NOT-CHECKABLE"}
    assert row_of(house, "engine_version_found", "kv_cache_tokens", "gpus", "gpu_count") == (None, None, ["MI300X"], 1)
    (share,) = row_of(house, "total_input_tokens / total_output_tokens")
    assert row_of(house, "usd_per_mtok_output") == (pytest.approx(2.0 + float(str(share))),)
    assert codes["roofline_compute"] == "PASS"
    assert found_below(house.data) == {}


def test_a_suite_whose_prompts_the_server_does_not_take_is_refused_in_plain_words(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth("hosted")

    record, _folder = record_of(house, run_night(house, truth.url, write_suite(house, "tokens")))

    assert (record.outcome, record.stage) == ("failed", "server")
    assert record.reason is not None
    assert f"{truth.url} takes no prompts as tokens (HTTP 404" in record.reason
    assert record.reason.endswith("set prompts.form in the suite to one that it takes: chat")


def test_requests_that_a_rate_limit_refuses_are_counted_with_the_time_to_wait(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth("rate_limit:20")  # the first questions are fewer
    suite = write_suite(house)
    suite.write_text(suite.read_text().replace("request_count = 12", "request_count = 40"))

    record, folder = record_of(house, run_night(house, truth.url, suite))

    rows = [json.loads(line) for line in (folder / "load" / "requests.jsonl").read_text().splitlines()]
    limited = [row["retry_after_s"] for row in rows if row["outcome"] == "rate_limited"]
    assert (record.outcome, limited) == ("measured", [7.0, 7.0])


def test_a_rate_limit_before_the_load_ends_the_start_with_the_time_to_wait(
    house: NightFixture, start_truth: StartTruth
) -> None:
    truth = start_truth("rate_limit:2")

    record, _folder = record_of(house, run_night(house, truth.url, write_suite(house)))

    assert (record.outcome, record.stage) == ("failed", "server")
    assert f"{truth.url} limits the rate already before the load (HTTP 429, retry after 7.0 s)" in str(record.reason)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('[[variants]]\nname = "a"\n[[variants]]\nname = "b"\nflags = ["--x"]\n', "asks for an engine of its own"),
        ("[[ladder]]\nmax_num_seqs = 4\n", "ladder starts other servers"),
    ],
)
def test_what_a_server_that_already_runs_cannot_be_asked_is_refused_before_anything_is_sent(
    house: NightFixture, start_truth: StartTruth, change: str, words: str
) -> None:
    truth = start_truth()
    suite = write_suite(house)
    suite.write_text(
        suite.read_text().replace('name = "endpoint"\nversion = "as found"', 'version = "0.32.0"') + change
    )

    with pytest.raises(SuiteError, match=words) as caught:
        make_night(suite, truth.url, poc=False)

    assert "nothing was sent" in str(caught.value)
    assert truth.log("received") == []


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://user:secret@host", "has a user or a password"),
        ("http://host/v1", "without a path"),
        ("https://host:x", "must have the form"),
        ("http://", "must have the form"),
    ],
)
def test_a_target_that_is_no_endpoint_is_refused(house: NightFixture, target: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        make_night(write_suite(house), target, poc=False)
    assert "secret@" not in str(caught.value)


def test_a_suite_for_an_endpoint_needs_its_url(house: NightFixture) -> None:
    with pytest.raises(SuiteError, match="is a server that already runs, and --target is local: give its URL"):
        make_night(write_suite(house), "local", poc=False)


def test_a_key_that_the_suite_names_must_be_set(house: NightFixture) -> None:
    suite = write_suite(house, known='api_key_env = "MY_KEY"')

    with pytest.raises(UsageError, match="the endpoint needs MY_KEY"):
        make_night(suite, "http://127.0.0.1:9", poc=False)
