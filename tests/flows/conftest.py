"""A data folder, a suite of small scenarios, and the truth server in the engine's place."""

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.context import SettingsContext
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    temporary_settings,
)

from bench.errors import BadRunsError
from bench.record import CalibratedLoad, Calibration, NightRecord
from flows.cli import main
from flows.end_state import loaded
from flows.ending import silence_stderr_at_exit
from flows.nightly import nightly
from flows.temporary_server import DATABASE
from infra.hardware.host_facts import read_host
from infra.ledger.ledger import Ledger
from infra.processes import detached
from infra.storage.store import ABANDONED, PARTIAL
from meter import METER_VERSION
from tests.flows.deployed import ROOT, deploy
from tests.flows.real_engine import build_engine, write_quick
from tests.flows.serving import migrated, serving, shared_address
from tests.flows.without_prefect import without_prefect
from tests.watchdogs import end_watchdogs

silence_stderr_at_exit()
TRUTH_SERVER = ROOT / "tests" / "emulators" / "truth_server.py"
SUITE = """
name = "truth"
repeats = {repeats}
seed = 7
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
environment = {{ TRUTH_FAULT = "{fault}", TRUTH_TTFT_MS = "{ttft_ms}", TRUTH_ITL_MS = "5" }}

[quality]
min_duration_s = 0.2
min_requests_per_slot = 10
max_other_cpu_share = 1.0

[[scenarios]]
name = "one"
isl = 16
osl = 8
concurrency = 1
request_count = 12
warmup_count = 1

[[scenarios]]
name = "two"
isl = 16
osl = 16
concurrency = 2
request_count = 24
warmup_count = 2
"""


# Speed is never asserted in a test: on a loaded machine windows shrink, and a late client or server says so.
ABOUT_SPEED = {
    "busy_host",  # other tests run beside the night
    "stolen_cpu",
    "slow_core",  # who shares the cores, outside a virtual machine too
    "tpot_disagreement",  # beside others it only warns: of a client that gets no CPU, the first token is late
    "bursty_stream",  # a client that gets no CPU reads several events at once
    "duration_short",
    "client_bound",
    "client_bound_core",
    "client_bound_envelope",
    "client_bound_merged",
    "cold_start_contamination",
    "sessions_not_held",  # as little CPU between two sessions
    "concurrency_not_reached",  # one slot that waits for the CPU is still at work when the others are done
    "dispatch_late",
    "late_replay",
    "live_disagreement",
    "live_not_held",
    "steady_drift",
    "rate_not_offered",
    "unstable",  # so repeats differ
}


# The verdicts that runs of a healthy night may have: the noise of a host decides.
HEALTHY = {"accepted", "suspect"}


@dataclass(frozen=True)
class NightFixture:
    """A data folder with a suite, and how to run the command line on it."""

    data: Path
    suite: Path
    environment: dict[str, str]

    def write_suite(self, *, fault: str = "", repeats: int = 1, ttft_ms: int = 20) -> Path:
        self.suite.write_text(SUITE.format(fault=fault, repeats=repeats, ttft_ms=ttft_ms))
        return self.suite

    def start(self, *argv: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "flows", *argv]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=ROOT,
            start_new_session=True,
        )

    def cli(self, *argv: str, timeout_s: float = 900) -> "subprocess.CompletedProcess[str]":
        process = self.start(*argv)
        out, err = process.communicate(timeout=timeout_s)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def call(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        """The command line inside this process: where no process is needed, since its imports take seconds.

        A night needs `prefect_api`, too, or would start a server.
        """
        out, err, before = io.StringIO(), io.StringIO(), dict(os.environ)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        code: object = 0
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["nightbench", *argv])
            try:
                os.environ.update(self.environment)
                main()
            except SystemExit as ended:
                code = ended.code
            finally:
                os.environ.clear()
                os.environ.update(before)
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        assert isinstance(code, int)
        return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())

    def orphans(self) -> list[psutil.Process]:
        """What killed nights of this house left running."""
        return detached.orphans(self.data)

    def leftovers(self) -> list[str]:
        """Whatever a night must not leave behind: processes, machines, open leases, half-written files."""
        ledger = Ledger(self.data / "ledger.sqlite")
        running = [f"process {p.pid}" for lease in ledger.leases() for p in detached.marked(lease.lease_id)]
        machines = [str(path) for path in (self.data / "machines").glob("*")]
        leases = [f"lease {lease.lease_id}" for lease in ledger.open_leases()]
        names = [path for path in self.data.rglob("*") if path.name.startswith((PARTIAL, ABANDONED))]
        halves = [path for path in self.data.rglob("*") if path.name.endswith((".tmp", ".partial"))]
        return [*running, *machines, *leases, *map(str, names), *map(str, halves)]


def make_house(folder: Path, prefect_home: Path) -> NightFixture:
    """A house in a folder of its own; only those who are given its environment know of it."""
    executable = folder / "vllm"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{TRUTH_SERVER}" "$@"\n')
    executable.chmod(0o755)
    data = folder / "data"
    settings = {
        "NIGHTBENCH_DATA": str(data),
        "NIGHTBENCH_VLLM_EXECUTABLE": str(executable),
        "NIGHTBENCH_DEPLOYED_SUITES": str(folder),
    }
    environment = {**os.environ, **settings, "PREFECT_HOME": str(prefect_home)}
    for name in ("PREFECT_API_URL", "PREFECT_API_DATABASE_CONNECTION_URL"):
        environment.pop(name, None)
    made = NightFixture(data, folder / "suite.toml", environment)
    made.write_suite()
    return made


def live_in(house: NightFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this very process have the house's settings."""
    for name in ("NIGHTBENCH_DATA", "NIGHTBENCH_VLLM_EXECUTABLE", "NIGHTBENCH_DEPLOYED_SUITES"):
        monkeypatch.setenv(name, house.environment[name])


@dataclass(frozen=True)
class Ended:
    """A night that came to its end, whatever its runs were worth."""

    night: str
    verdicts: Mapping[str, int]


def run_nightly(
    house: NightFixture,
    target: str = "local",
    resume: str | None = None,
    *,
    suite: Path | None = None,
    machine: str | None = None,
) -> Ended:
    """Run a whole night inside this process; what ends it early is raised, and bad runs are not."""
    try:
        summary = loaded(nightly(suite=str(suite or house.suite), target=target, resume=resume, machine=machine))
    except BadRunsError as bad:
        return Ended(bad.night, bad.verdicts)
    return Ended(summary.night, summary.verdicts)


def end_all(house: NightFixture) -> None:
    """End whatever the nights of a house left running."""
    end_watchdogs(house.data)
    for lease in Ledger(house.data / "ledger.sqlite").leases():
        detached.end(detached.marked(lease.lease_id), patience_s=0.1)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_home: Path) -> Iterator[NightFixture]:
    made = make_house(tmp_path, prefect_home)
    live_in(made, monkeypatch)
    yield made
    end_all(made)


@pytest.fixture
def nights_without_prefect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The night's own process releases its machine: there is neither Prefect nor a watchdog to do it."""
    monkeypatch.setattr("infra.leases.watched_ledger.start_watchdog", lambda *_lease: None)
    with without_prefect():
        yield


def trust_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nights inside this process find their client fit for anything."""

    def fit_for_anything(_data: Path, night: NightRecord, _cache: Path, _say: object) -> Calibration:
        load = CalibratedLoad(streams=1000, stream_tok_per_s=1e6, workers=1)
        host = read_host().hostname
        return Calibration(calibration_id=night.night, hostname=host, meter_version=METER_VERSION, loads=(load,))

    monkeypatch.setattr("infra.agent.operations.calibrate_night", fit_for_anything)


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was found fit for anything a test asks: nights inside the tests do not measure it each time."""
    trust_the_client(monkeypatch)


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path | None:
    """The home of the server that all workers of this test run share; None without workers."""
    home = getattr(request.config, "workerinput", {}).get("shared_server")
    return home and Path(home)


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory, shared: Path | None) -> Path:
    """A home of Prefect's own for the nights that run as processes."""
    return migrated(tmp_path_factory.mktemp("prefect"), shared, DATABASE)


@pytest.fixture(scope="session")
def server_home(tmp_path_factory: pytest.TempPathFactory, shared: Path | None) -> Path:
    """The folder of the tests' Prefect server, with its database."""
    return shared or tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def server_url(server_home: Path, shared: Path | None) -> Iterator[str]:
    """One Prefect server for every night that need not bring its own: to begin one takes longer than such a night."""
    if shared is not None:
        yield shared_address(shared)
    else:
        with serving(server_home) as url:
            yield url


@contextmanager
def served_by(url: str) -> Iterator[None]:
    """Let every flow inside this process use this server; heartbeats cost a second a flow.

    For threads too, which know no temporary settings: what they log would begin a server of Prefect's own.
    """
    own = {
        PREFECT_API_URL: url,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        PREFECT_CLIENT_MAX_RETRIES: 7,  # a database that another test keeps locked answered 503 for two minutes
    }
    with (
        temporary_settings(own),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("prefect.context.GLOBAL_SETTINGS_CONTEXT", SettingsContext.get())
        yield
        APILogWorker.drain_all(timeout=10)  # what is left when the server has ended is tried again for minutes at exit


@pytest.fixture(scope="session")
def prefect_api(server_url: str) -> Iterator[None]:
    """The tests' server for every flow that runs inside the tests."""
    with served_by(server_url):
        yield


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path, prefect_api: None) -> NightFixture:
    """A house after one healthy night, for all tests that only read what it left."""
    del prefect_api
    made = make_house(tmp_path_factory.mktemp("past"), prefect_home)
    with pytest.MonkeyPatch.context() as patch:
        live_in(made, patch)
        trust_the_client(patch)
        run_nightly(made)
    return made


@pytest.fixture
def after_a_night(past: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NightFixture]:
    """A copy of that house, for tests that break something in it or go on with its night."""
    data = tmp_path / "data"
    shutil.copytree(past.data, data, symlinks=True)
    made = replace(past, data=data, environment={**past.environment, "NIGHTBENCH_DATA": str(data)})
    live_in(made, monkeypatch)
    yield made
    end_all(made)


@pytest.fixture
def served(house: NightFixture, server_url: str) -> NightFixture:
    """The house, whose nights use that server too."""
    house.environment["PREFECT_API_URL"] = server_url
    return house


@pytest.fixture(scope="session")
def engine() -> str:
    """The real engine."""
    return build_engine()


@pytest.fixture(scope="session")
def quick_engine(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real engine, quicker to start."""
    return write_quick(engine, tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def api_url(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """That server, where everything is deployed."""
    deploy(tmp_path_factory.mktemp("deployer"), server_url)
    return server_url


@pytest.fixture
def api(api_url: str) -> Iterator[SyncPrefectClient]:
    with temporary_settings({PREFECT_API_URL: api_url}), get_client(sync_client=True) as client:
        yield client
