"""The rented machine of a storm: it runs no engine, and its work takes only the time of the storm's clock."""

import getpass
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.errors import (
    HostError,
    LostConnectionError,
    MachineUnfitError,
    NightbenchError,
    ServerDiedError,
    ServerStartError,
)
from bench.host import HostFacts
from bench.machine.canary import CanaryRecord
from bench.machine.cloud_init import READY_FILE
from bench.record import Calibration, PlannedRun, RunRecord
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.bootstrap import cloud_named, ledger
from infra.clock import SystemClock
from infra.clouds.abilities import ImageCloud
from infra.engines.canary import CanaryRequest
from infra.engines.engine_at import EngineAt
from infra.engines.engine_log import explain_log
from infra.engines.server import RunningServer
from infra.hardware.preflight import Fitness
from infra.leases.release import explain_loss
from infra.measurement.run import RunContext
from infra.measurement.run import measure as measure_run
from infra.models.models import PreparedModel
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from infra.remote.ssh_keys import keys_of
from infra.reporting import Reporter, Say
from infra.settings import Settings
from tests.bench.machine import canaries
from tests.bench.machine.canaries import MI300X
from tests.chaos.engine_faults import LINES, UNFIT_WORDS, install_tool
from tests.chaos.paper_load import PATIENCE_S, loads_on_paper
from tests.chaos.place import Life, Place
from tests.chaos.steps import Steps
from tests.emulators.virtual_clock import VirtualClock

LOOK_S = 600.0
ONE_LOAD = threading.Lock()  # the machines of a night are threads, and a load on paper changes their whole process
_REAL_CLOCK = {name: getattr(SystemClock, name) for name in ("now", "monotonic", "sleep")}
ENGINE = EngineAt(Path("/nowhere/vllm"), None)
MODEL = PreparedModel("tiny", Path("/nowhere/model"), "seed-0", "0" * 64, 1, 1, 1)
HOST = HostFacts(hostname="rented", kernel="6", cpu_model=None, cpu_count=8, memory_bytes=1 << 36, python_version="3")
SERVER = RunningServer(1, 1, Path("/nowhere/pid"), Path("/nowhere/log"), (), {}, ENGINE, cold_start_s=60.0)


@dataclass
class RentedMachine:
    """An executor in the real one's place: what a machine is asked succeeds, as long as the machine exists."""

    place: Place
    life: Life
    steps: Steps
    lease_id: str
    step_clock: Callable[[float], None]  # moves this computer's wall clock
    settings: Settings
    is_in_use: bool = True  # until its results are here; a release may take several attempts after that
    unfit: str | None = None  # how, as in tests/chaos/engine_faults.py

    def run(self, operation: Callable[..., Any], reporter: Reporter, *args: Any) -> Any:
        del reporter
        return getattr(self, operation.__name__)(*args)

    def check_machine(self, *_asked: object) -> Fitness:
        self.work(30.0)
        if self.place.ssh_port is not None:
            self._start_engine(self.place.ssh_port)
        self.steps.after("S6")
        self.unfit = self._next("machines", self.life.unfit, self.lease_id)
        if self.unfit == "check":
            raise MachineUnfitError(UNFIT_WORDS["check"])
        return Fitness((), 1 << 40, None, None, None, 1 << 40)

    def prepare_paths(self, *_asked: object) -> MachinePaths:
        # What it writes is collected at once: its data folder is ours.
        host = HOST if self.life.telemetry is None else HOST.model_copy(update={"gpus": (MI300X,)})
        return MachinePaths(self.place.data, self.place.data / "elsewhere", host)

    def mount_volume(self, *_asked: object) -> Path:
        return Path("/nowhere/volume")

    def prepare(self, *_asked: object) -> Prepared:
        if self.life.snapshot is not None:
            cloud = cloud_named(self.settings, "digitalocean")
            assert isinstance(cloud, ImageCloud)
            cloud.snapshot(self.machine_id, self.life.snapshot)
        if self.life.clock_off_s:
            self.step_clock(self.life.clock_off_s)
        self.work(self.life.work_s / 4)
        self.steps.after("S7")
        return Prepared(ENGINE, MODEL, {"engine": 10.0, "model": 60.0})

    def run_canary(self, asked: CanaryRequest) -> CanaryRecord:
        self.work(10.0)
        if asked.position == "before" and self.unfit == "floor":
            return canaries.record({"memory_copy": 900.0}, lease_id=asked.lease_id)
        if asked.position == "before" and self.unfit == "driver":
            crashed = CanaryRecord.not_run(asked.lease_id, "before", SystemClock().now(), "it was ended by signal 11")
            return crashed.model_copy(update={"unfit": UNFIT_WORDS["driver"]})
        return CanaryRecord.not_run(asked.lease_id, asked.position, SystemClock().now(), "this machine has no engine")

    def calibrate(self, *_asked: object) -> Calibration:
        return Calibration(reason="this machine is only a record")

    def bring_up(
        self, _context: RunContext, run: PlannedRun, _engine: EngineAt, ready_timeout_s: float
    ) -> RunningServer:
        self.work(self.life.work_s / 4)
        self.steps.after("S8")
        failure = self._next("starts", self.life.starts, f"{run.scenario.server_id} {ready_timeout_s:g}")
        if failure is not None:
            raise self._failed(ServerStartError, failure)
        return SERVER

    def is_serving(self, *_asked: object) -> bool:
        return True

    def measure(self, context: RunContext, run: PlannedRun, running: object, is_last: bool) -> RunRecord:
        # To record that a server did not start takes no time.
        self.work(1.0 if isinstance(running, NightbenchError) else self.life.work_s / 4)
        server = running if isinstance(running, NightbenchError) else self._server_under_load(run)
        strange = self._next("strange", self.life.strange, _name_of(run)) if isinstance(server, RunningServer) else None
        tools = self.place.notes / "tools" if self.life.telemetry is not None else None
        with ONE_LOAD, loads_on_paper(tools, strange):
            record = measure_run(context, run, server, lambda _share: None, is_last=is_last)
        with (self.place.notes / f"{self.life.night}.measured").open("a") as log:
            log.write(f"{record.scenario_id}/{record.repeat}\n")
        self.steps.after("S9")
        return record

    def shut_down(self, *_asked: object) -> None:
        """Nothing runs."""

    def collect_and_clean(self, _say: Say) -> None:
        self.steps.after("S10")
        self.work(30.0)
        self.is_in_use = False
        self.steps.after("S11")

    @property
    def machine_id(self) -> str:
        return str(ledger(self.settings).lease(self.lease_id).machine_id)

    def work(self, seconds: float) -> None:
        """Let time pass; LostConnectionError once the machine no longer exists, and when its lease is over."""
        clock, lease = SystemClock(), ledger(self.settings).lease(self.lease_id)
        cloud = cloud_named(self.settings, lease.cloud)
        while seconds > 0:
            clock.sleep(min(seconds, LOOK_S))
            seconds -= LOOK_S
            gone = explain_loss(cloud, clock, lease)
            if gone or clock.now() > lease.expires_at:
                if gone and self.is_in_use:
                    with (self.place.notes / "lost.log").open("a") as log:
                        log.write(f"{lease.machine_id} {VirtualClock(self.place.clock).now_s()}\n")
                self._note("lost", "")
                raise LostConnectionError(gone or "its lease is over")

    def _server_under_load(self, run: PlannedRun) -> RunningServer | NightbenchError:
        """The server of a load, or the error of one that exits during it."""
        what = _name_of(run)
        failure = self._next("loads", self.life.loads, what)
        if self.life.telemetry is not None:
            install_tool(self.place.notes / "tools", self._next("tools", self.life.telemetry, what) or "")
        return SERVER if failure is None else self._failed(ServerDiedError, failure)

    def _failed(self, kind: type[NightbenchError], failure: str) -> NightbenchError:
        """The error of a server with this class of failure, as infra/engines/server.py makes it of the server's log."""
        log = self.place.notes / "server.log"
        log.write_text(f"INFO starting\n{LINES[failure]}\n")
        quoted, found = explain_log(ENGINE.module, log)
        error = kind(f"the server exited: {quoted}")
        error.failure = found
        return error

    def _next(self, name: str, failures: Sequence[str], what: str) -> str | None:
        """What the night's next start, load or machine fails with; None: it does not."""
        file = self._notes(name)
        count = len(file.read_text().splitlines()) if file.exists() else 0
        failure = next(iter(failures[count:]), "") or None
        self._note(name, f"{what} {str(failure).replace(' ', '-')}")
        return failure

    def _note(self, name: str, text: str) -> None:
        with self._notes(name).open("a") as log:
            log.write(f"{self.machine_id} {text}\n")

    def _notes(self, name: str) -> Path:
        return self.place.notes / f"{self.life.night}.{name}"

    def _start_engine(self, ssh_port: int) -> None:
        """Wait until a real machine is ready; then start a process on it that must end with it."""
        keys = keys_of(self.place.keys, self.lease_id)
        address = str(ledger(self.settings).lease(self.lease_id).address)
        access = Access(address, ssh_port, getpass.getuser(), keys.client_private, keys.host_public)
        with _real_time():
            host = SshHost(access, patience_s=PATIENCE_S)
            until = time.monotonic() + PATIENCE_S
            while not _is_ready(host) and time.monotonic() < until:
                time.sleep(0.1)
            host.start_detached(["sleep", "613"], "nightbench/engine")
            host.close()


def _name_of(run: PlannedRun) -> str:
    return f"{run.scenario.scenario_id}/{run.repeat}"


@contextmanager
def _real_time() -> Iterator[None]:
    """Time as it is outside of a storm: a connection to a real machine waits for it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in _REAL_CLOCK.items():
            patch.setattr(SystemClock, name, method)
        yield


def _is_ready(host: SshHost) -> bool:
    try:
        return host.run(f"test -e {READY_FILE}").exit_code == 0
    except HostError:
        return False
