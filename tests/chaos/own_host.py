"""A host of one's own in a storm: a home folder on this computer with a real shell, and what a night runs there."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.errors import LostConnectionError, RemoteCommandError
from bench.machine.names import MachineName
from infra import bootstrap
from infra.bootstrap import ledger
from infra.clock import SystemClock
from infra.clouds.host_lease import LEASE
from infra.engines.server import RunningServer
from infra.ledger.lease import Lease
from infra.processes import detached
from infra.processes.detached import MARK
from infra.processes.file_lock import try_lock
from infra.reporting import Say
from tests.chaos.machine import LOOK_S, SERVER, RentedMachine
from tests.chaos.place import HostFault, Place
from tests.emulators.virtual_clock import VirtualClock

TARGET = "ssh:somebody@192.0.2.7:22"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEQXn8Sgy2Hd0lZEBcTpFCBUGuTdNaAXWXVMOMGIsSNh"
# Beside the home folder.
BREACHES, KEY, KNOWN_HOSTS, PROGRAMS = "breaches.log", "key", "known_hosts", "bin"
PATIENCE_S = 600.0  # of real time
LOCK = "NIGHTBENCH_MACHINE_LOCK"


class ShellHost:
    """A connection to the host. A fault is before, after, or the death of this process meanwhile."""

    def __init__(self, home: Path, next_fault: Callable[[], str | None] = lambda: None) -> None:
        self._home, self._next_fault = home, next_fault

    def output_of(self, script: str, *, timeout_s: float = PATIENCE_S) -> str:
        del timeout_s  # of real time, which is not the storm's
        fault = self._next_fault()
        if fault == "before":
            raise LostConnectionError("the connection was lost before the command")
        command = subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=self._home,
            env={
                "HOME": str(self._home),
                "PATH": f"{self._home.parent / PROGRAMS}:{os.environ['PATH']}",
                LOCK: str(lock_of(self._home)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)  # the command goes on, as on another computer
        out, said = command.communicate(timeout=PATIENCE_S)
        if command.returncode:
            raise RemoteCommandError(said)
        if fault == "after":
            raise LostConnectionError("the connection was lost after the command")
        return out

    def close(self) -> None:
        """Nothing is open."""


def make_host(folder: Path, clock: Path) -> Path:
    """The home folder of a host that all processes of a storm may reach; its clock is that of the storm."""
    home, date = folder / "home", folder / PROGRAMS / "date"
    home.mkdir(parents=True)
    date.parent.mkdir()
    date.write_text(f"#!/bin/sh\nprintf '%.0f\\n' $(od -An -tf8 -N8 '{clock.absolute()}')\n")
    date.chmod(0o755)
    (folder / KEY).touch()
    (folder / KNOWN_HOSTS).write_text(f"192.0.2.7 {HOST_KEY}\n")
    return home


@contextmanager
def reached(place: Place, faults: tuple[HostFault, ...] = ()) -> Iterator[None]:
    """Let this process reach the place's host, if it has one."""
    if place.own_host is None:
        yield
        return
    home, by_number, numbers = place.own_host, dict(faults), itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTBENCH_SSH_KEY", str(home.parent / KEY))
        patch.setenv("NIGHTBENCH_SSH_KNOWN_HOSTS", str(home.parent / KNOWN_HOSTS))
        patch.setattr(
            bootstrap, "SshHost", lambda *_to, **_patience: ShellHost(home, lambda: by_number.get(next(numbers)))
        )
        yield


def holder_of(home: Path) -> str | None:
    """The name of the lease that holds a host."""
    with suppress(FileNotFoundError):
        return str(json.loads((home / LEASE).read_bytes())["name"])
    return None


def lock_of(home: Path) -> Path:
    """The machine lock of a host."""
    return home.parent / "machine.lock"


def end_lock_holders(home: Path) -> None:
    """End what holds the machine lock of a host for leases that were never released."""
    detached.end(detached.marked(str(lock_of(home)), LOCK), patience_s=0.0)


def is_locked(home: Path) -> bool:
    """Whether the machine lock of a host is held."""
    lock_of(home).touch()
    with lock_of(home).open() as file:
        return not try_lock(file.fileno())


def expiry_of_holder(home: Path) -> float | None:
    """The time on the host's clock at which the lease that holds it expires."""
    with suppress(FileNotFoundError):
        return float(json.loads((home / LEASE).read_bytes())["expires_s"])
    return None


def running_engines(home: Path) -> dict[str, int]:
    """The pids of the engines that run on a host, by the names of their leases."""
    pids = {path.name: int(path.read_text()) for path in home.glob("engines/*")}
    return {name: pid for name, pid in pids.items() if _is_running(pid)}


def _is_running(pid: int) -> bool:
    """Whether a process runs; /proc itself is asked, not what a stepped clock shows of it."""
    try:
        state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


class HeldMachine(RentedMachine):
    """The host as its night uses it, with a process as its engine; notes whatever a night must never see there."""

    engine: "subprocess.Popen[bytes] | None" = None
    is_over: bool = False  # results are collected, and what follows is the release, which may be repeated

    def bring_up(self, *asked: Any) -> RunningServer:
        super().bring_up(*asked)
        home, lease = self._home(), self.held_lease()
        self.engine = subprocess.Popen(
            ["sleep", "613"], env={"PATH": os.environ["PATH"], MARK: self.lease_id}, start_new_session=True
        )
        (home / "engines").mkdir(exist_ok=True)
        written = home / f".{lease.name}"
        written.write_text(str(self.engine.pid))
        written.rename(home / "engines" / str(lease.name))
        try:
            self.must_hold()  # it may have expired and been taken since the last look
        except LostConnectionError:
            self.shut_down()
            raise
        return SERVER

    def shut_down(self, *_asked: object) -> None:
        if self.engine is not None:
            self.engine.kill()
            self.engine.wait()

    def collect_and_clean(self, say: Say) -> None:
        try:
            super().collect_and_clean(say)
            self.shut_down()
        finally:
            self.is_over = True

    def work(self, seconds: float) -> None:
        """Let time pass; LostConnectionError once the lease has expired, and when the host is taken after that."""
        clock, lease = SystemClock(), self.held_lease()
        while seconds > 0:
            self.must_hold()
            clock.sleep(min(seconds, LOOK_S))
            seconds -= LOOK_S
            self.must_hold()
            if clock.now() > lease.expires_at:
                raise LostConnectionError("its lease is over")

    def held_lease(self) -> Lease:
        return ledger(self.settings).lease(self.lease_id)

    def _home(self) -> Path:
        assert self.place.own_host is not None
        return self.place.own_host

    def must_hold(self) -> None:
        """Note where the host was taken from a lease that has not expired, and where another engine runs beside it.

        LostConnectionError where another lease holds the host, or none.
        """
        lease = self.held_lease()
        holder = holder_of(self._home())  # first: the lease may expire right after
        if holder != lease.name:
            # One that was never held is not lost: its request failed.
            if lease.rented_at and not (self.is_over or self._has_expired(str(lease.name))):
                self._breach(f"{lease.name} lost its host to {holder} before it expired")
            raise LostConnectionError("another lease holds the host")
        if not (is_locked(self._home()) or self.is_over or self._has_expired(str(lease.name))):
            self._breach(f"{lease.name} measures without the host's machine lock")
        others = self._others(str(lease.name))
        if others:
            self._breach(f"{lease.name} measures while the engine of {', '.join(others)} runs")

    def _others(self, name: str) -> set[str]:
        """Other engines that keep running: one whose lease has expired may be about to notice that."""
        until = time.monotonic() + PATIENCE_S
        while True:
            others = running_engines(self._home()).keys() - {name}
            if not others or not all(map(self._has_expired, others)) or time.monotonic() > until:
                return set(others)
            time.sleep(0.05)

    def _has_expired(self, name: str) -> bool:
        parsed = MachineName.parse(name)
        assert parsed is not None
        assert parsed.expires_at is not None
        return parsed.expires_at.timestamp() < VirtualClock(self.place.clock).now_s()

    def _breach(self, what: str) -> None:
        with (self._home().parent / BREACHES).open("a") as log:
            log.write(f"{what}\n")
