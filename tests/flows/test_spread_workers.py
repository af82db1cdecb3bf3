"""One night over two machines: on two workers, of which one dies in the middle of a load, and in two containers."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling

from bench.manifest import MANIFEST
from flows.service import postgres
from flows.service.deployments import place_machines
from flows.service.parts import Service as NightService
from infra.ledger.ledger import Ledger
from infra.reporting import silent
from infra.settings import Settings
from infra.storage import store
from infra.storage.store import PARTIAL
from infra.storage.upload import read_uploads
from tests.emulators.s3 import KEYS, Bucket
from tests.flows.conftest import NightFixture, end_all
from tests.flows.deployed import ROOT, begin, deploy, state_of, template_of, working
from tests.flows.postgres_folder import postgres_folder
from tests.flows.renting import Account, renting
from tests.flows.serving import PATIENCE_S, Service, environment, free_port, is_healthy, start
from tests.infra.real_docker import docker, require_daemon
from warehouse.lake.query import run_sql

pytestmark = [pytest.mark.prefect, pytest.mark.matrix]
WHOLE = f"runs/*/*/[!.]*/{MANIFEST}"
NIGHT_S = 1500.0  # two calibrations, two loads each, and the silence after which a worker counts as gone


@pytest.fixture
def database() -> Iterator[str]:
    """A database of PostgreSQL."""
    with postgres_folder() as folder:
        made = folder / "postgres"
        postgres.make(made, silent)
        process = subprocess.Popen(postgres.argv(made), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        yield postgres.url(made)
        process.terminate()
        process.wait(timeout=PATIENCE_S)


@pytest.fixture
def url(database: str, tmp_path: Path) -> Iterator[str]:
    """Prefect's server with all its services, on that database, with everything deployed."""
    home, port = tmp_path / "server", free_port()
    home.mkdir()
    url = f"http://127.0.0.1:{port}/api"
    own = {
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_API_DATABASE_CONNECTION_URL": database,
    }
    server = start(home, ["server", "start"], {**environment(home, url), **own})
    try:
        server.wait_until(lambda: server.process.poll() is not None or is_healthy(url), "the server is healthy")
        (tmp_path / "deployer").mkdir()
        deploy(tmp_path / "deployer", url)
        yield url
    finally:
        server.stop()


@dataclass(frozen=True)
class Team:
    """An account, and two computers: the first has the nights, the second only runs machines of them."""

    account: Account
    first: NightFixture
    second: NightFixture


@pytest.fixture
def team(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with Bucket() as bucket, renting(tmp_path, house) as account:
        account.write_comparison(ttft_ms=1000)
        shared = {
            **house.environment,
            "NIGHTBENCH_S3_BUCKET": bucket.name,
            "NIGHTBENCH_S3_ENDPOINT": bucket.endpoint,
            "NIGHTBENCH_SSH_PATIENCE_S": "30",
        }
        one = {"NIGHTBENCH_SPREAD": "true", "NIGHTBENCH_DATABASE_URL": "postgresql+asyncpg://prefect@db/prefect"}
        data = tmp_path / "second"
        second = NightFixture(data, house.suite, {**shared, "NIGHTBENCH_DATA": str(data)})
        yield Team(account, replace(house, environment={**shared, **one}), second)
        end_all(second)


def kill(worker: Service) -> None:
    """End a worker and the flow runs that it started, without a word to anybody."""
    for process in worker.living():
        process.kill()
    worker.process.wait(timeout=PATIENCE_S)


def uploaded(data: Path) -> list[str]:
    """The runs of every night that this computer has uploaded."""
    return [run for night in store.nights(data) for run in read_uploads(data, night).runs]


def wait_for_end(api: SyncPrefectClient, run: object, worker: Service) -> None:
    until = time.monotonic() + NIGHT_S
    while not state_of(api, run).is_final():  # type: ignore[arg-type]
        assert time.monotonic() < until, worker.last_words()
        time.sleep(2)


def open_leases(data: Path) -> list[str]:
    return [lease.lease_id for lease in Ledger(data / "ledger.sqlite").open_leases()]


@contextmanager
def two_workers(team: Team, url: str, folder: Path) -> Iterator[tuple[SyncPrefectClient, Service, Service]]:
    """The first computer's worker, which has room for a night and one machine, and the second's, with room for one."""
    further = ("--work-queue", "machines", "--limit", "1")  # as docs/how-to/spread-a-night.md starts it
    with (
        temporary_settings({PREFECT_API_URL: url}),
        get_client(sync_client=True) as api,
        working(folder / "worker-1", url, team.first.environment, "--limit", "2") as first,
        working(folder / "worker-2", url, team.second.environment, *further) as second,
    ):
        yield api, first, second


def parts_of(api: SyncPrefectClient) -> list[str]:
    """The type of the state of each flow run of a machine."""
    runs = [one for one in api.read_flow_runs() if one.name.startswith("machine ")]
    return sorted(one.state_type.value for one in runs if one.state_type is not None)


def assert_nothing_is_left(team: Team) -> None:
    for house in (team.first, team.second):
        assert open_leases(house.data) == []
        assert [left for left in house.leftovers() if PARTIAL not in left] == []  # of the load that was killed
    team.account.emulator.invariant()


def test_of_two_workers_one_is_killed_and_the_other_finishes_its_machine(team: Team, url: str, tmp_path: Path) -> None:
    with two_workers(team, url, tmp_path) as (api, first, second):
        run = begin("nightly/nightly", suite=str(team.first.suite), target="digitalocean")
        second.wait_until(lambda: bool(uploaded(team.second.data)), "the second worker has measured and uploaded a run")
        kill(second)
        (measured,) = team.second.data.glob(WHOLE)
        wait_for_end(api, run.id, first)
        assert parts_of(api) == ["COMPLETED", "COMPLETED", "CRASHED"], first.last_words()
        assert first.stop() == []

    (night,) = store.nights(team.first.data)
    plan = store.read_night(team.first.data, night)
    rows = run_sql(team.first.data, "SELECT scenario_id, repeat, outcome FROM measurements").rows
    assert sorted(map(tuple, rows)) == sorted((one.scenario.scenario_id, one.repeat, "measured") for one in plan.runs)
    fetched = team.first.data / measured.relative_to(team.second.data)
    assert fetched.read_text() == measured.read_text()  # so it was not run again
    assert not (team.second.data / "warehouse.duckdb").exists()
    leases = {record["lease"]["machine_id"] for record in team.account.records()}
    assert (len(leases), len(team.account.names())) == (3, 3)
    assert_nothing_is_left(team)


def test_a_night_that_is_cancelled_cancels_its_machines_on_both_computers(team: Team, url: str, tmp_path: Path) -> None:
    with two_workers(team, url, tmp_path) as (api, first, second):
        run = begin("nightly/nightly", suite=str(team.first.suite), target="digitalocean")
        for worker, house in ((first, team.first), (second, team.second)):
            worker.wait_until(lambda house=house: bool(open_leases(house.data)), "it has rented a machine")  # type: ignore[misc]
        api.set_flow_run_state(run.id, Cancelling())
        first.wait_until(lambda: state_of(api, run.id).is_final(), "the night is cancelled")
        second.wait_until(lambda: parts_of(api) == 2 * ["CANCELLED"], "its machines are cancelled")
        assert state_of(api, run.id).name == "Cancelled"
        assert (first.stop(), second.stop()) == ([], [])

    assert_nothing_is_left(team)


POOL, IMAGE = "containers", "nightbench-tests:1"
# Of the image of docs/how-to/spread-a-night.md only the variables: what it has installed is mounted from this computer.
MOUNTED = ("/bin", "/etc", "/lib", "/lib64", "/usr", str(ROOT), sys.base_prefix)


@pytest.fixture
def docker_worker(tmp_path: Path) -> Path:
    """A folder with the package of Prefect that has the worker of a docker pool."""
    require_daemon()
    folder, lock = tmp_path / "packages", ROOT / "requirements" / "docker_worker.lock.txt"
    uv = str(Path(sys.executable).with_name("uv"))
    argv = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(lock)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"uv cannot fetch it: {done.stderr[-300:]}")
    return folder


@pytest.fixture
def image(docker_worker: Path, tmp_path: Path) -> Iterator[str]:
    """An image without files, but with the folders that programs write to."""
    del docker_worker
    (tmp_path / "root" / "tmp").mkdir(parents=True)
    archive = subprocess.run(["tar", "-C", tmp_path / "root", "-c", "."], capture_output=True, check=True).stdout
    variables = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NIGHTBENCH_HOME": str(ROOT)}
    changes = [word for name, value in variables.items() for word in ("--change", f"ENV {name}={value}")]
    subprocess.run(["docker", "import", *changes, "-", IMAGE], input=archive, check=True, stdout=subprocess.DEVNULL)
    yield IMAGE
    docker("rmi", "--force", IMAGE)


def in_containers(team: Team, tmp_path: Path) -> WorkPoolCreate:
    """The pool of the how-to, whose containers get what one of the second computer would have."""
    template = template_of("docker")
    ours = {name: value for name, value in team.second.environment.items() if name.startswith("NIGHTBENCH_")}
    chosen = {
        "image_pull_policy": "Never",
        "network_mode": "host",
        "auto_remove": True,
        "volumes": [
            *(f"{path}:{path}:ro" for path in MOUNTED),
            *(f"{path}:{path}" for path in (gettempdir(), tmp_path)),  # the emulated cloud and the data folder
        ],
        "env": KEYS | ours,
    }
    for name, value in chosen.items():
        template["variables"]["properties"][name]["default"] = value
    return WorkPoolCreate(name=POOL, type="docker", base_job_template=template)


def test_containers_of_a_docker_pool_run_the_machines_of_a_night(
    team: Team, url: str, tmp_path: Path, docker_worker: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_MACHINES_POOL", POOL)
    monkeypatch.setenv("NIGHTBENCH_MACHINES_IMAGE", image)
    port = int(url.split(":")[2].split("/", maxsplit=1)[0])
    home = tmp_path / "docker-worker"
    home.mkdir()
    with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as api:
        api.create_work_pool(in_containers(team, tmp_path))
        place_machines(NightService(Settings(data=tmp_path, service_port=port)))
        env = {**environment(home, url), "PYTHONPATH": str(docker_worker), "PREFECT_WORKER_QUERY_SECONDS": "2"}
        with ExitStack() as started:
            worker = start(home, ["worker", "start", "--pool", POOL, "--limit", "2"], env)
            started.callback(worker.stop)
            first = started.enter_context(working(tmp_path / "worker-1", url, team.first.environment, "--limit", "1"))
            run = begin("nightly/nightly", suite=str(team.first.suite), target="digitalocean")
            wait_for_end(api, run.id, first)
            ran = worker.log.read_text()
            assert (first.stop(), worker.stop()) == ([], [])
        assert parts_of(api) == ["COMPLETED", "COMPLETED"], ran

    assert ran.count("created successfully") == 2
    rows = run_sql(team.first.data, "SELECT DISTINCT outcome, machine FROM measurements").rows
    assert sorted(map(tuple, rows)) == [("measured", "mi300x"), ("measured", "mi325x")]
    assert docker("ps", "--all", "--quiet", "--filter", f"ancestor={image}").stdout == ""
    assert_nothing_is_left(team)
