"""Cell (e) of the kill matrix: what Prefect does to a night that rents a machine, and what is done to Prefect then."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.flow_engine import run_flow
from prefect.states import Cancelling

from bench.errors import SuiteError, UsageError
from flows.nightly import nightly
from tests.flows.conftest import make_house
from tests.flows.deployed import begin, finish, state_of, working
from tests.flows.renting import Account, has_been_tidied, is_under_load, renting
from tests.flows.serving import Service
from tests.pairs import a_sample, matrix
from tests.watchdogs import end_watchdogs

pytestmark = pytest.mark.prefect
UNTIL_THE_END_S = 3600.0
CREATE_S = 40.0  # the night is cancelled meanwhile, and the cloud deletes no droplet that it still creates


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One account and one house for all of these tests: each ends with nothing rented, whatever came before it."""
    folder = tmp_path_factory.mktemp("rented")
    with renting(folder, make_house(folder, folder / "prefect")) as account:
        account.write_suite(ttft_ms=3000)
        yield account


@pytest.fixture
def worker(account: Account, api_url: str, tmp_path: Path) -> Iterator[Service]:
    with working(tmp_path / "worker", api_url, account.house.environment) as service:
        yield service


def has_asked(account: Account) -> bool:
    """Whether a machine was asked for: it bills, whether it is up or not."""
    return bool(account.emulator.living("nb"))


def has_a_machine(account: Account) -> bool:
    """Whether a machine is up, and was written down with its address."""
    return any(lease.address for lease in account.ledger().open_leases())


def begin_a_night(account: Account, worker: Service, until: Callable[[Account], bool]) -> UUID:
    """Ask for a night and wait until it has come so far."""
    run = begin("nightly/nightly", suite=str(account.house.suite), target="digitalocean")
    worker.wait_until(lambda: until(account), "the night has come so far")
    return run.id


def process_of(api: SyncPrefectClient, run: UUID) -> psutil.Process:
    """The process of a flow run, as its worker told the server."""
    where = api.read_flow_run(run).infrastructure_pid
    assert where is not None
    return psutil.Process(int(where.rpartition(":")[2]))


@pytest.mark.parametrize(("until", "create_s"), matrix([(has_asked, CREATE_S), (is_under_load, 0.5)], kept=0))
def test_a_cancelled_night_gives_its_machine_back(
    api: SyncPrefectClient,
    worker: Service,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    until: Callable[[Account], bool],
    create_s: float,
) -> None:
    monkeypatch.setattr(account.emulator.behaviour.delays, "create_s", create_s)
    run = begin_a_night(account, worker, until)

    api.set_flow_run_state(run, Cancelling())
    worker.wait_until(lambda: state_of(api, run).is_final(), "the night is cancelled")

    assert state_of(api, run).name == "Cancelled"
    account.judge()
    assert worker.stop() == []


@pytest.mark.usefixtures("prefect_api")
def test_a_deployed_night_that_cannot_fit_is_refused_and_no_machine_is_asked_for(
    api: SyncPrefectClient, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (name for name in account.house.environment if name.startswith("NIGHTBENCH_")):
        monkeypatch.setenv(name, account.house.environment[name])
    source = f'source = "hf:meta-llama/Llama-3.1-405B-Instruct@{"a" * 40}"\nprecision = "bf16"'
    suite = account.house.suite.with_name("too-large.toml")
    suite.write_text(account.house.suite.read_text().replace('source = "generated:tiny?seed=0"', source, 1))
    asked = len(account.emulator.requests("POST", "/v2/droplets"))
    run = begin("nightly/nightly", suite=str(suite), target="digitalocean")

    with pytest.raises(SuiteError):
        run_flow(nightly, flow_run=api.read_flow_run(run.id))  # as the process does that a worker starts

    ended = state_of(api, run.id)
    why = "does not fit the GPU memory: it needs 756 GiB"
    assert (ended.name, why in str(ended.message)) == ("Failed", True), ended.message
    assert len(account.emulator.requests("POST", "/v2/droplets")) == asked


def test_force_is_refused_where_a_night_is_resumed() -> None:
    with pytest.raises(UsageError, match="night 2026-03-01T010000Z was checked when it was planned"):
        nightly.fn(resume="2026-03-01T010000Z", force=True)


# The moment of the kill is drawn: another one with SEED=N, and each of them in a soak.
MOMENTS = random.Random(int(os.environ.get("SEED", "5"))).sample([has_asked, has_a_machine, is_under_load], 3)


@pytest.mark.parametrize("until", a_sample(MOMENTS, 1))
def test_where_a_night_is_killed_its_worker_gives_the_machine_back(
    api: SyncPrefectClient, worker: Service, account: Account, until: Callable[[Account], bool]
) -> None:
    run = begin_a_night(account, worker, until)

    end_watchdogs(account.house.data)
    process_of(api, run).kill()
    worker.wait_until(lambda: state_of(api, run).is_final(), "the night has crashed")
    worker.wait_until(lambda: has_been_tidied(account), "the hook has run")

    assert state_of(api, run).name == "Crashed"
    account.judge()
    assert worker.stop() == []


@pytest.mark.matrix
def test_where_the_worker_is_killed_too_the_next_reap_gives_the_machine_back_and_not_before(
    api: SyncPrefectClient,
    api_url: str,
    worker: Service,
    account: Account,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(account.droplets, "please_wait_s", UNTIL_THE_END_S)  # the night waits for it, and goes on
    run = begin_a_night(account, worker, has_a_machine)
    night = process_of(api, run)
    (machine,) = account.emulator.living("nb")

    worker.process.kill()
    worker.process.wait()
    with working(tmp_path / "next-worker", api_url, account.house.environment) as next_worker:
        finish(api, next_worker, "reap/reap")
        assert night.is_running()
        assert account.emulator.living("nb") == [machine]
        assert state_of(api, run).name == "Running"  # its worker is dead, and it is not

        end_watchdogs(account.house.data)
        night.kill()
        finish(api, next_worker, "reap/reap")
        account.judge()
        assert state_of(api, run).name == "Crashed"  # or the next night would wait for it
        assert next_worker.stop() == []
    assert worker.living() == []
