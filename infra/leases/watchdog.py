"""The watchdog of one lease: a process of its own, which survives the night and releases the machine after it.

    python -m infra.leases.watchdog LEDGER LEASE PID START

It waits until the ledger shows the lease as released. If the process that rented exits before, or the lease expires, it
runs `nightbench reap --lease LEASE` until that succeeds. While it waits it imports little and writes nothing. It counts
the time that passes, suspension included: a step of the wall clock neither delays nor hastens it.
"""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.errors import LeaseError
from infra.clock import Clock, SystemClock, poll
from infra.processes import detached
from infra.processes.environment import NETWORK, child_environment
from infra.processes.identity import has_exited, start_of
from infra.reporting import Say

LOOK_EVERY_S = 5.0
GRACE_S = 60.0  # after the lease's expiry, for the night's own release
PAUSE_S, PAUSE_MAX_S = 30.0, 600.0  # between two attempts to release
GIVE_UP_S = 7 * 24 * 3600.0
# It releases at the clouds and on the hosts that the settings name, so it gets the settings with their token.
NEEDED = (*NETWORK, "NIGHTBENCH_*", "NIGHTBENCH_DO_TOKEN", "NIGHTBENCH_SSH_KEY", "SSH_AUTH_SOCK")


@dataclass(frozen=True)
class WatchedLease:
    """The lease, the ledger that lists it, and the process that took it."""

    ledger_file: Path
    lease_id: str
    owner_pid: int
    owner_start: str


def start_watchdog(ledger_file: Path, lease_id: str) -> None:
    """Start the watchdog of a lease that this process takes, unless it runs; LeaseError where it cannot be started."""
    data = ledger_file.absolute().parent
    if is_watched(data, lease_id):
        return
    owner = [str(os.getpid()), str(start_of(os.getpid()))]
    argv = [sys.executable, "-m", "infra.leases.watchdog", str(ledger_file.absolute()), lease_id, *owner]
    environment = child_environment({"NIGHTBENCH_DATA": str(data)}, NEEDED)
    for mark in (detached.MARK, detached.OWNER):  # what ends a dead night's processes must not end this one
        environment.pop(mark, None)
    try:
        pid_file_of(data, lease_id).parent.mkdir(exist_ok=True)
        detached.start_detached(argv, environment, pid_file_of(data, lease_id), log_of(data))
    except OSError as error:
        raise LeaseError(
            f"the watchdog of lease {lease_id} cannot be started ({error}), and nothing is rented without it: free "
            f"memory or disk space, or make {data} writable"
        ) from error


def pid_file_of(data: Path, lease_id: str) -> Path:
    """The pid file of a lease's watchdog."""
    return data / "watchdogs" / f"{lease_id}.pid"


def log_of(data: Path) -> Path:
    """The log of every watchdog of a data folder."""
    return data / "watchdog.log"


def is_watched(data: Path, lease_id: str) -> bool:
    """Whether the watchdog of a lease runs on this computer."""
    return detached.is_running(pid_file_of(data, lease_id))


def watch(watched: WatchedLease, clock: Clock, release: Callable[[], bool], say: Say) -> None:
    """Return once the lease is released; when its owner has exited or it has expired, call `release` until it is True.

    A ledger that cannot be read, or lacks the lease, changes nothing: the deadline last read counts.
    """
    deadline = _Deadline(clock)

    def is_over_or_due() -> str | None:
        is_alone = has_exited(watched.owner_pid, watched.owner_start)  # first: it may release just before its exit
        lease = _read(watched)
        if lease is not None and lease.state == "released":
            return "released"
        if is_alone:
            return f"process {watched.owner_pid} exited without releasing it"
        return "it has expired" if deadline.has_passed(lease) else None

    why = poll(clock, LOOK_EVERY_S, is_over_or_due)
    if why == "released":
        return
    say(f"lease {watched.lease_id}: {why}; releasing its machine")
    pause = _Pause()
    is_released = poll(clock, pause.next_s, lambda: release() or _is_released(watched), GIVE_UP_S)
    outcome = "released" if is_released else f"ALARM: NOT RELEASED after {GIVE_UP_S / 86400:.0f} days, STILL BILLED"
    say(f"lease {watched.lease_id}: {outcome}")


@dataclass
class _Deadline:
    """A lease's deadline on the monotonic clock, so that a step of the wall clock does not move it."""

    clock: Clock
    expires_at: datetime | None = None
    due_s: float = float("inf")

    def has_passed(self, lease: "_Lease | None") -> bool:
        """Whether the deadline has passed, with the grace; a deadline that has changed is taken over."""
        if lease is not None and lease.expires_at != self.expires_at:
            self.expires_at = lease.expires_at
            left_s = (lease.expires_at - self.clock.now()).total_seconds()
            self.due_s = self.clock.monotonic() + left_s + GRACE_S
        return self.clock.monotonic() >= self.due_s


@dataclass
class _Pause:
    """The pause before the next attempt, which grows."""

    last_s: float = PAUSE_S / 2

    def next_s(self) -> float:
        self.last_s = min(PAUSE_MAX_S, 2 * self.last_s)
        return self.last_s


@dataclass(frozen=True)
class _Lease:
    state: str
    expires_at: datetime


def _read(watched: WatchedLease) -> _Lease | None:
    """The lease in the ledger, by SQL alone: the ledger's own module is many times as large as this process."""
    question = "SELECT state, expires_at FROM leases WHERE lease_id = ?"
    try:
        with closing(sqlite3.connect(f"{watched.ledger_file.as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(question, (watched.lease_id,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else _Lease(row[0], datetime.fromisoformat(row[1]))


def _is_released(watched: WatchedLease) -> bool:
    lease = _read(watched)
    return lease is not None and lease.state == "released"


class _SinceBoot(SystemClock):
    """A clock that counts on while the computer is suspended, as the bill does."""

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def _release(lease_id: str) -> bool:
    """Release the lease in a process of its own, which is as new as the code on the disk is then."""
    try:
        argv = [sys.executable, "-m", "flows", "reap", "--lease", lease_id]
        done = subprocess.run(argv, env=child_environment(also=NEEDED), check=False)
    except OSError as error:
        _say(f"lease {lease_id}: `nightbench reap` could not be started: {error}")
        return False
    return done.returncode == 0


def _say(message: str) -> None:
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {message}\n")
    sys.stdout.flush()


def main(ledger_file: str, lease_id: str, owner_pid: str, owner_start: str) -> None:
    """Watch one lease to its end."""
    watched = WatchedLease(Path(ledger_file), lease_id, int(owner_pid), owner_start)
    watch(watched, _SinceBoot(), lambda: _release(lease_id), _say)
    pid_file_of(watched.ledger_file.parent, lease_id).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
