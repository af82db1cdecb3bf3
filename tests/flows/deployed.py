"""A Prefect server, what prefect.yaml deploys on it, and workers, as on the computer that runs the nights."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment

from infra.no_telemetry import QUIET

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240
NOT_OURS = ("PREFECT_", "NIGHTBENCH_")


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

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for something that this service brings about; its log is shown where it does not."""
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until, f"{what}: not within {PATIENCE_S} s\n{self.last_words()}"
            time.sleep(0.5)

    def last_words(self) -> str:
        return self.log.read_text()[-4000:]

    def stop(self) -> list[str]:
        """Ask it to end and return what it left behind, which is killed.

        Prefect turns our signal into a KeyboardInterrupt, which can be lost in a callback; a worker
        that did not hear it is ended as an operator would end it.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=10)
        left = self.living()
        killed = [f"{process.pid} {process.name()}" for process in left]
        for process in left:
            process.kill()
        return killed


def _environment(home: Path, url: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    return {**ours, **QUIET, "PREFECT_HOME": str(home), "PREFECT_API_URL": url}


def _start(home: Path, argv: list[str], env: dict[str, str]) -> Service:
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


def _say(argv: list[str], env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *argv]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """The address of a server; it schedules nothing, only tests start runs, and nobody looks at its pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    where = {"PREFECT_SERVER_API_HOST": "127.0.0.1", "PREFECT_SERVER_API_PORT": str(port)}
    quiet = {"PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false", "PREFECT_SERVER_UI_ENABLED": "false"}
    server = _start(home, ["server", "start"], {**_environment(home, url), **where, **quiet})
    try:
        server.wait_until(lambda: server.process.poll() is not None or _is_healthy(url), "the server is healthy")
        yield url
    finally:
        killed = server.stop()
    assert killed == []


def deploy(home: Path, url: str) -> None:
    """Let a server know the pool and every deployment."""
    _say(["work-pool", "create", "--type", "process", "nightbench"], _environment(home, url))
    _say(["deploy", "--all"], _environment(home, url))


@contextmanager
def working(home: Path, url: str, environment: Mapping[str, str]) -> Iterator[Service]:
    """A worker elsewhere than in the checkout: what it needs to know is in its environment."""
    home.mkdir()
    ours = {name: value for name, value in environment.items() if name.startswith("NIGHTBENCH_")}
    env = {**_environment(home, url), **ours, "NIGHTBENCH_HOME": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "2"}
    service = _start(home, ["worker", "start", "--pool", "nightbench"], env)
    try:
        yield service
    finally:
        service.stop()


def state_of(api: SyncPrefectClient, run: UUID) -> State[Any]:
    state = api.read_flow_run(run).state
    assert state is not None
    return state


def begin(name: str, **parameters: object) -> FlowRun:
    """Ask for a run of a deployment, as the schedule or a person does."""
    run = run_deployment(name, parameters=parameters, timeout=0, as_subflow=False)
    assert isinstance(run, FlowRun)
    return run


def finish(api: SyncPrefectClient, worker: Service, name: str, **parameters: object) -> FlowRun:
    """Run a deployment to its good end."""
    run = begin(name, **parameters)
    worker.wait_until(lambda: state_of(api, run.id).is_final(), f"{name} is over")
    assert state_of(api, run.id).name == "Completed", worker.last_words()
    return run
