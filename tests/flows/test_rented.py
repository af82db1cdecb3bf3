"""Whole nights on rented machines: the emulated cloud's, which are real sshds, with the truth server as the engine."""

import json
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from traceback import format_exception

import pytest

from bench.errors import MachinesEndedError, MachineUnfitError, NightbenchError
from bench.manifest import MANIFEST
from flows.nightly import nightly
from flows.prepare import prepare
from tests.bench.quality.test_lm_eval import RESULTS
from tests.flows.conftest import HEALTHY, NightFixture, run_nightly
from tests.flows.renting import KIND, OTHER_KIND, Account, renting
from tests.pairs import matrix
from tests.planted import SECRETS, Watch, content_of, found_below, found_in, plant
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect]
SLOW_COPY = '{"test": "memory_copy", "device": 0, "value": 900.0}'


@pytest.fixture
def account(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with renting(tmp_path, house) as account:
        for name, value in account.settings.items():
            monkeypatch.setenv(name, value)
        yield account


# lm-eval on a machine: without the hub it has the data only where it was downloaded before.
LM_EVAL = """#!/bin/sh
data=$HOME/.cache/huggingface/datasets/colours
while [ $# -gt 0 ]; do [ "$1" = --output_path ] && out=$2; shift; done
if [ -n "$out" ]; then how=asked; elif [ "$HF_HUB_OFFLINE" = 0 ]; then how=online; else how=offline; fi
echo $how >> {calls}
if [ $how = online ] && [ -e {hub} ]; then mkdir -p "$data"; fi
[ -d "$data" ] || {{ echo "ConnectionError: Couldn't reach 'colours' on the Hub" >&2; exit 1; }}
[ -z "$out" ] || {{ mkdir -p "$(dirname "$out")" && cp {results} "${{out%.json}}_2026.json"; }}
"""
ENGINE_SECRET = "ENGINE_LICENSE_KEY"  # noqa: S105 - the name of a variable
PLANTED = ("HF_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", ENGINE_SECRET)


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_night_on_a_rented_machine_ends_with_rows_gives_it_back_and_tells_no_secret(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    server_home: Path,
) -> None:
    plant(monkeypatch, *PLANTED)
    suite, engine = account.house.suite, account.image.with_name("licensed-vllm")
    suite.write_text(
        suite.read_text().replace("\n[engine]", f'\n[engine]\nsecret_environment = ["{ENGINE_SECRET}"]', 1)
    )
    tell = f'printf %s "${ENGINE_SECRET}" | sha256sum'
    engine.write_text(f'#!/bin/sh\n{tell}\nexec "{suite.with_name("vllm")}" "$@"\n')
    engine.chmod(0o755)
    account.install(str(engine))
    secrets = {name: SECRETS[name] for name in PLANTED} | {"NIGHTBENCH_DO_TOKEN": account.emulator.token}

    with Watch(secrets, account.house.data / "keys") as watch:
        summary = run_nightly(account.house, "digitalocean")

    assert set(summary.verdicts) <= {"accepted", "suspect"}
    assert sum(summary.verdicts.values()) == 2
    account.judge()
    assert len(account.emulator.requests("POST", "/v2/droplets")) == 1
    data = account.house.data
    ((kind, region, usd),) = run_sql(data, "SELECT kind, region, usd FROM leases").rows
    assert (kind, region, usd > 0) == (KIND, "atl1", True)
    stages = {row[0] for row in run_sql(data, "SELECT stage FROM stages").rows}
    assert {"boot", "software", "model", "calibrate", "serve", "measure", "release"} <= stages
    (log,) = data.glob("runs/*/servers/*.log")
    assert log.read_text().startswith(sha256(SECRETS[ENGINE_SECRET].encode()).hexdigest())
    assert {"the key client", "the key host"} <= watch.secrets.keys()
    assert watch.in_argv == set()
    assert watch.holders <= {("HF_TOKEN", "prepare"), (ENGINE_SECRET, "bring_up"), (ENGINE_SECRET, "engine")}
    assert found_below(data, watch.secrets) == {}
    assert found_in(caplog.text.encode(), watch.secrets) == set()
    # Prefect's database has parameters, logs and artifacts.
    assert summary.night.encode() in b"".join(map(content_of, server_home.glob("*.db*")))
    assert found_below(server_home, watch.secrets) == {}


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_machine_that_vanishes_costs_one_scenario_and_another_measures_the_rest(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_SSH_PATIENCE_S", "30")
    account.write_suite(repeats=2, ttft_ms=100)

    is_over = threading.Event()

    def vanish() -> None:
        runs = account.house.data / "runs"
        while not list(runs.glob("*/*/[!.]*/MANIFEST.sha256")):  # however long the first run takes here
            if is_over.wait(0.2):
                return
        (droplet,) = account.emulator.living("nb")
        account.emulator.reclaim(droplet.droplet_id)

    reclaimer = threading.Thread(target=vanish)
    reclaimer.start()
    try:
        summary = run_nightly(account.house, "digitalocean")
    finally:
        is_over.set()
        reclaimer.join()

    assert set(summary.verdicts) <= HEALTHY
    assert sum(summary.verdicts.values()) == 4
    assert len(account.names()) == 2
    account.judge()
    assert len({record["lease"]["machine_id"] for record in account.records()}) == 2


@pytest.mark.matrix
@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_of_two_kinds_one_vanishes_and_the_results_of_the_other_stand(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_SSH_PATIENCE_S", "30")
    monkeypatch.setenv("NIGHTBENCH_CAPACITY_WAIT_S", "0")
    account.write_comparison(ttft_ms=100)
    is_over = threading.Event()

    def vanish() -> None:
        """Reclaim the second machine once its first run is here, and let the cloud have no other one."""
        whole = f"runs/*/*/[!.]*/{MANIFEST}"
        while not [
            one for one in account.house.data.glob(whole) if OTHER_KIND in (one.parent / "record.json").read_text()
        ]:
            if is_over.wait(0.2):
                return
        account.emulator.capacity[(OTHER_KIND, "tor1")] = -1  # its own place becomes free
        (lost,) = [one for one in account.emulator.living("nb") if one.size.slug == OTHER_KIND]
        account.emulator.reclaim(lost.droplet_id)

    reclaimer = threading.Thread(target=vanish)
    reclaimer.start()
    try:
        with pytest.raises(
            MachinesEndedError, match=r"mi325x: 1 of its 2 runs is missing.* the runs of mi300x are complete"
        ):
            run_nightly(account.house, "digitalocean")
    finally:
        is_over.set()
        reclaimer.join()

    account.judge()
    data = account.house.data
    verdicts = run_sql(data, "SELECT machine, outcome, reason FROM measurements ORDER BY machine, outcome").rows
    assert [row[:2] for row in verdicts] == [
        ("mi300x", "measured"),
        ("mi300x", "measured"),
        ("mi325x", "measured"),
        ("mi325x", "not-run"),
    ]
    assert f"has no {OTHER_KIND} available now" in verdicts[-1][2]
    leases = run_sql(data, "SELECT machine, kind, usd > 0 FROM leases ORDER BY machine, usd DESC").rows
    had_none = ("mi325x", OTHER_KIND, False)  # the cloud refused the machine in the place of the lost one
    assert leases == (("mi300x", KIND, True), ("mi325x", OTHER_KIND, True), had_none)
    assert len(list(data.glob("runs/*/calibration-mi*.json"))) == len(list(data.glob("runs/*/calibration*.json")))


@pytest.mark.usefixtures("prefect_api")
def test_machines_below_the_floor_of_their_gpu_are_given_back_and_two_others_are_tried(account: Account) -> None:
    lines = ('{"torch": "2.9.0", "gpus": ["AMD Instinct MI300X VF"]}', SLOW_COPY, '{"done": true}')
    python = account.house.suite.with_name("python")  # beside the engine
    python.write_text("#!/bin/sh\n" + "".join(f"echo 'nightbench-canary {line}'\n" for line in lines))
    python.chmod(0o755)

    with pytest.raises(MachineUnfitError, match=r"memory_copy of GPU 0 .* reached 900 GB/s, the floor is 3,195 GB/s"):
        nightly(suite=str(account.house.suite), target="digitalocean")

    assert len(account.names()) == 3
    account.judge()
    found = run_sql(account.house.data, "SELECT value, share_of_peak < 0.2, unfit IS NOT NULL FROM canary").rows
    assert found == 3 * ((900.0, True, True),)
    reasons = run_sql(account.house.data, "SELECT DISTINCT outcome, reason LIKE '%is unfit%' FROM measurements").rows
    assert reasons == (("not-run", True),)


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_where_another_kind_is_rented_its_runs_are_other_scenarios_and_its_model_stays_on_a_volume(
    account: Account, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    suite = account.house.suite
    suite.write_text(suite.read_text().replace("\n[engine]", "cache_volume_gib = 20\n\n[engine]", 1))
    account.emulator.capacity[(KIND, "atl1")] = 0

    summary = run_nightly(account.house, "digitalocean")

    assert set(summary.verdicts) <= {"accepted", "suspect"}
    assert sum(summary.verdicts.values()) == 2
    planned = json.loads((account.house.data / "runs" / summary.night / "night.json").read_bytes())
    assert {run["scenario"]["machine"]["kind"] for run in planned["runs"]} == {OTHER_KIND}
    tries = run_sql(account.house.data, "SELECT kind, outcome FROM attempts ORDER BY attempt").rows
    assert list(map(tuple, tries)) == [(KIND, "no-capacity"), (OTHER_KIND, "rented")]
    (volume,) = account.emulator.state.volumes.values()
    (manifest,) = (tmp_path / "droplets" / "volumes" / volume.volume_id).glob("models/*/MANIFEST.sha256")
    assert manifest.parent.name == "tiny-seed-0"
    assert volume.droplet_id is None
    assert f"volume {volume.name} is detached" in caplog.text
    account.judge(volume.name)


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_golden_image_is_made_once_holds_no_secret_and_is_what_the_night_boots(
    account: Account, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub, calls = tmp_path / "hub-answers", tmp_path / "calls"
    harness = tmp_path / "lm-eval"
    harness.write_text(LM_EVAL.format(hub=hub, calls=calls, results=RESULTS))
    harness.chmod(0o755)
    with account.image.open("a") as environment:
        environment.write(f"export NIGHTBENCH_LM_EVAL={harness}\n")
    suite = account.house.suite
    suite.write_text(suite.read_text() + '\n[quality.lm_eval]\ntasks = ["nightbench_colours"]\n')
    hub.touch()

    name = prepare(suite=str(account.house.suite))
    assert ": no results can be collected" in caplog.text
    assert "could not be collected" not in caplog.text
    again = prepare(suite=str(account.house.suite))

    assert name == again
    assert len(account.names()) == 1
    (disk,) = (tmp_path / "droplets" / "snapshots").glob("*")
    kept = {str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file()}
    assert "nightbench/host.env" in kept
    assert not [file for file in kept if file.startswith(("nightbench/leases", "nightbench/data", "nightbench/ready"))]
    assert not [file for file in kept if "authorized_keys" in file]
    hub.unlink()

    summary = run_nightly(account.house, "digitalocean")

    assert sum(summary.verdicts.values()) == 2
    runs = [record for record in account.records() if "lineage" in record]  # the others are lm-eval's
    assert {record["lineage"]["snapshot"] for record in runs} == {name}
    assert [image.name for image in account.emulator.state.images.values() if image.name.startswith("nb-")] == [name]
    assert calls.read_text().split() == ["offline", "online", "offline", "asked"]  # the hub: only for the image
    scores = run_sql(account.house.data, "SELECT task, metric, value FROM quality_scores WHERE value > 0.5").rows
    assert ("nightbench_colours", "acc_norm", 0.6) in [tuple(row) for row in scores]


def wrong_token(account: Account) -> None:
    account.house.environment["NIGHTBENCH_DO_TOKEN"] = "dop_v1_" + 64 * "0"


def token_that_may_not_rent(account: Account) -> None:
    scopes = (
        "account:read",
        "sizes:read",
        "regions:read",
        "droplet:read",
        "snapshot:read",
        "image:read",
        "ssh_key:read",
    )
    account.house.environment["NIGHTBENCH_DO_TOKEN"] = account.emulator.add_token(*scopes)


def unknown_kind(account: Account) -> None:
    account.house.suite.write_text(
        account.house.suite.read_text().replace(KIND, "gpu-moon").replace(OTHER_KIND, "moon")
    )


def no_quota(account: Account) -> None:
    account.emulator.behaviour.gpu_limit = 0


def secret_that_is_not_set(account: Account) -> None:
    suite = account.house.suite
    suite.write_text(suite.read_text().replace("\n[engine]", '\n[engine]\nsecret_environment = ["NOBODY_HAS_IT"]', 1))


def model_that_cannot_fit(account: Account) -> None:
    """405 billion weights of 16 bits on one GPU of 192 GB."""
    suite = account.house.suite
    source = f'source = "hf:meta-llama/Llama-3.1-405B-Instruct@{"a" * 40}"\nprecision = "bf16"'
    suite.write_text(suite.read_text().replace('source = "generated:tiny?seed=0"', source, 1))


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize(
    ("wrong", "said", "exit_code"),
    matrix(
        [
            (model_that_cannot_fit, "does not fit the GPU memory: it needs 756 GiB of 171 GiB; .* add --force", 2),
            (secret_that_is_not_set, "NOBODY_HAS_IT .*, which is not set here", 2),
            (no_quota, "limit", 3),
            (wrong_token, "NIGHTBENCH_DO_TOKEN", 3),
            (token_that_may_not_rent, "lacks the scope", 3),
            (unknown_kind, "offers no machine of kind 'gpu-moon'", 3),
        ],
        kept=3,
    ),
)
def test_an_account_that_cannot_rent_is_a_sentence_and_nothing_is_rented(
    account: Account, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Account], None], said: str, exit_code: int
) -> None:
    wrong(account)
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", account.house.environment["NIGHTBENCH_DO_TOKEN"])

    with pytest.raises(NightbenchError, match=said) as refused:
        nightly(suite=str(account.house.suite), target="digitalocean")

    assert refused.value.exit_code == exit_code
    assert account.house.environment["NIGHTBENCH_DO_TOKEN"] not in "".join(format_exception(refused.value))
    assert account.emulator.living("nb") == []
    account.judge()


@pytest.mark.usefixtures("prefect_api")
def test_what_cannot_fit_is_rented_for_with_force_only_and_its_rows_say_so(account: Account) -> None:
    model_that_cannot_fit(account)
    no_quota(account)

    with pytest.raises(NightbenchError, match="limit"):
        nightly(suite=str(account.house.suite), target="digitalocean", force=True)

    assert account.emulator.requests("POST", "/v2/droplets")
    why = "the load does not fit the GPU memory: it needs 756 GiB of 171 GiB"
    ((forced, outcome),) = run_sql(account.house.data, "SELECT DISTINCT forced, outcome FROM measurements").rows
    assert (str(forced).startswith(why), outcome) == (True, "not-run")

    with pytest.raises(NightbenchError, match="does not fit the GPU memory"):
        prepare(suite=str(account.house.suite))
    with pytest.raises(NightbenchError, match="limit"):
        prepare(suite=str(account.house.suite), force=True)


def test_prepare_refuses_a_suite_of_which_only_the_last_scenario_does_not_fit(account: Account) -> None:
    model_that_cannot_fit(account)
    text = account.house.suite.read_text().replace("3.1-405B", "3.3-70B")
    large = text.replace("isl = 16\nosl = 16\nconcurrency = 2", "isl = 3000\nosl = 16\nconcurrency = 4000")
    account.house.suite.write_text(large.replace("request_count = 24", "request_count = 8000"))

    one = account.house.call("plan", str(account.house.suite), "--target", "digitalocean", "--poc")
    done = account.house.call("prepare", str(account.house.suite))

    assert "would be refused" not in one.stderr
    assert (done.returncode, "does not fit the GPU memory" in done.stderr) == (2, True), done.stderr
    assert account.emulator.requests("POST", "/v2/droplets") == []


def test_the_command_refuses_what_cannot_fit_before_anything_begins(account: Account) -> None:
    model_that_cannot_fit(account)

    done = account.house.call("run", str(account.house.suite), "--target", "digitalocean")
    planned = account.house.call("plan", str(account.house.suite), "--target", "digitalocean")

    why = "the load does not fit the GPU memory: it needs 756 GiB of 171 GiB"
    assert (done.returncode, why in done.stderr, "add --force" in done.stderr) == (2, True, True)
    assert f"the night would be refused: {why}" in planned.stderr
    assert account.emulator.requests("POST", "/v2/droplets") == []
    assert not account.house.data.exists()
