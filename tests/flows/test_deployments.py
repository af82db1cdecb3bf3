"""What prefect.yaml deploys, on a server and a worker of its own, as on the computer that runs the nights."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling

from infra.settings import QUIET
from tests.flows.conftest import ROOT, House

pytestmark = pytest.mark.prefect
PATIENCE_S = 240
NOTHING: list[str] = []
NOT_OURS = ("PREFECT_", "NIGHTBENCH_")


def wait_until(is_so: Callable[[], bool], what: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, f"{what}: not within {PATIENCE_S} s\n{log.read_text()[-4000:]}"
        time.sleep(0.2)


@dataclass(frozen=True)
class Service:
    """A process that stays, and whatever it starts; all of them are known by the home of Prefect they were given."""

    process: "subprocess.Popen[bytes]"
    home: Path
    log: Path

    def living(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                is_ours = process.environ().get("PREFECT_HOME") == str(self.home)
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (OSError, psutil.Error):
                continue
        return found

    def stop(self) -> list[str]:
        """Ask it to end and return what had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        left = self.living()
        killed = [f"{process.pid} {process.name()}" for process in left]
        for process in left:
            process.kill()
        self.process.wait(timeout=10)
        return killed


def environment(home: Path, url: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    return {**ours, **QUIET, "PREFECT_HOME": str(home), "PREFECT_API_URL": url}


def start(home: Path, argv: list[str], env: dict[str, str]) -> Service:
    log = home / "log.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *argv],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=home,
            start_new_session=True,
        )
    return Service(process, home, log)


def say(argv: list[str], env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *argv]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def api_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that knows the pool and what prefect.yaml deploys; only tests start runs, it schedules none."""
    home = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    where = {"PREFECT_SERVER_API_HOST": "127.0.0.1", "PREFECT_SERVER_API_PORT": str(port)}
    quiet = {"PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false"}
    server = start(home, ["server", "start"], {**environment(home, url), **where, **quiet})
    try:
        wait_until(lambda: is_healthy(url), "the server is healthy", server.log)
        client_home = tmp_path_factory.mktemp("deployer")
        say(["work-pool", "create", "--type", "process", "nightbench"], environment(client_home, url))
        say(["deploy", "--all"], environment(client_home, url))
        yield url
    finally:
        killed = server.stop()
    assert killed == NOTHING


@pytest.fixture
def api(api_url: str) -> Iterator[SyncPrefectClient]:
    with temporary_settings({PREFECT_API_URL: api_url}), get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def worker(api_url: str, house: House, tmp_path: Path) -> Iterator[Service]:
    """A worker elsewhere than in the checkout: what it needs to know is in its environment."""
    home = tmp_path / "worker"
    home.mkdir()
    ours = {name: value for name, value in house.environment.items() if name.startswith("NIGHTBENCH_")}
    env = {**environment(home, api_url), **ours, "NIGHTBENCH_HOME": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "2"}
    service = start(home, ["worker", "start", "--pool", "nightbench"], env)
    try:
        yield service
    finally:
        service.stop()


def state_of(api: SyncPrefectClient, run: UUID) -> State[Any]:
    state = api.read_flow_run(run).state
    assert state is not None
    return state


def begin(name: str, **parameters: object) -> FlowRun:
    run = run_deployment(name, parameters=parameters, timeout=0, as_subflow=False)
    assert isinstance(run, FlowRun)
    return run


def finish(api: SyncPrefectClient, worker: Service, name: str, **parameters: object) -> FlowRun:
    run = begin(name, **parameters)
    wait_until(lambda: state_of(api, run.id).is_final(), f"{name} is over", worker.log)
    assert state_of(api, run.id).name == "Completed", worker.log.read_text()[-4000:]
    return run


def test_a_deployed_night_completes_and_its_page_shows_all_of_it(
    api: SyncPrefectClient, worker: Service, house: House
) -> None:
    run = finish(api, worker, "nightly/nightly", suite=str(house.suite))

    of_this_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
    shown = {artifact.key: artifact for artifact in api.read_artifacts(artifact_filter=of_this_run)}
    assert set(shown) == {"plan", "progress", "results", "findings", "report"}
    assert shown["progress"].data == 100
    assert {row["scenario"] for row in json.loads(str(shown["results"].data))} == {"one", "two"}
    page = Path(str(shown["report"].description))
    assert page.is_file()
    assert page.is_relative_to(house.data)
    assert worker.stop() == NOTHING
    assert house.leftovers() == NOTHING


def test_a_deployed_reap_gives_back_what_a_dead_night_left(
    api: SyncPrefectClient, worker: Service, house: House
) -> None:
    (house.data / "machines" / "forgotten").mkdir(parents=True)

    finish(api, worker, "reap/reap")

    assert house.leftovers() == NOTHING
    assert worker.stop() == NOTHING


def test_a_night_cancelled_while_it_measures_leaves_nothing_rented_and_nothing_running(
    api: SyncPrefectClient, worker: Service, house: House
) -> None:
    suite = house.write_suite(ttft_ms=3000)
    run = begin("nightly/nightly", suite=str(suite))
    loads = "runs/*/*/.partial-*/load/progress.json"
    wait_until(lambda: bool(list(house.data.glob(loads))), "a load is under way", worker.log)

    api.set_flow_run_state(run.id, Cancelling())
    wait_until(lambda: state_of(api, run.id).is_final(), "the night is cancelled", worker.log)

    assert state_of(api, run.id).name == "Cancelled"
    assert [left for left in house.leftovers() if ".partial-" not in left] == NOTHING
    assert worker.stop() == NOTHING


def test_whoever_starts_a_night_by_hand_is_told_what_each_parameter_means(api: SyncPrefectClient) -> None:
    schema = api.read_deployment_by_name("nightly/nightly").parameter_openapi_schema

    assert schema is not None
    described = {name for name, parameter in schema["properties"].items() if parameter.get("description")}
    assert described == {"suite", "target", "poc", "resume"}


@pytest.mark.parametrize(("name", "cron"), [("nightly/nightly", "0 2 * * *"), ("reap/reap", "0 * * * *")])
def test_what_is_deployed_runs_by_itself(api: SyncPrefectClient, name: str, cron: str) -> None:
    (schedule,) = api.read_deployment_by_name(name).schedules

    assert schedule.active
    assert schedule.schedule == CronSchedule(cron=cron, timezone="UTC")


def test_two_nights_wait_for_each_other(api: SyncPrefectClient) -> None:
    deployment = api.read_deployment_by_name("nightly/nightly")

    assert deployment.global_concurrency_limit is not None
    assert deployment.global_concurrency_limit.limit == 1
    assert deployment.concurrency_options is not None
    assert deployment.concurrency_options.collision_strategy == "ENQUEUE"


@pytest.mark.parametrize("name", ["nightly/nightly", "reap/reap"])
def test_no_path_of_the_deploying_computer_is_deployed(api: SyncPrefectClient, name: str) -> None:
    deployment = api.read_deployment_by_name(name)

    step = {"prefect.deployments.steps.set_working_directory": {"directory": "{{ $NIGHTBENCH_HOME }}"}}
    assert deployment.pull_steps == [step]
    assert str(ROOT) not in deployment.model_dump_json()


@pytest.mark.parametrize("name", ["nightly/nightly", "reap/reap"])
def test_no_deployed_run_talks_to_anybody(api: SyncPrefectClient, name: str) -> None:
    given = api.read_deployment_by_name(name).job_variables["env"]

    # What is set for the server alone says nothing to a run.
    assert given == {key: value for key, value in QUIET.items() if not key.startswith("PREFECT_SERVER_")}
