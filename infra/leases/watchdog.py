"""The watchdog of one lease: a process of its own, which survives the night and releases the machine after it.

    python -m infra.leases.watchdog LEDGER LEASE PID START

It waits until the ledger shows the lease as released. If the process that rented exits before, or the lease expires, it
runs `nightbench reap --lease LEASE --attempt N` until the ledger shows it: an exit code proves nothing. Once it has
read the lease it creates a file, its ready mark, without which nothing is rented. While it waits it imports little and
writes nothing. It counts the time that passes, suspension included: a step of the wall clock neither delays nor hastens
it.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.errors import LeaseError
from infra.clock import Clock, SystemClock, growing, poll
from infra.processes import detached
from infra.processes.environment import NETWORK, child_environment
from infra.processes.identity import has_exited, own_start
from infra.processes.own_program import FOLDER, from_any_folder, own_program
from infra.reporting import Say

LOOK_EVERY_S = 5.0
GRACE_S = 60.0  # after the lease's expiry, for the night's own release
PAUSE_S, PAUSE_MAX_S = 30.0, 600.0  # between two attempts to release
GIVE_UP_S = 7 * 24 * 3600.0
IN_USE = "its night has rented another machine"
READY_S = 120.0  # for it to start: a second on a quiet computer
READY_LOOK_S = 0.02
LOG_END = 1000
# It releases at the clouds and on the hosts that the settings name, so it gets the settings with their token.
NEEDED = (
    *NETWORK,
    *("NIGHTBENCH_*", "NIGHTBENCH_DO_TOKEN", "NIGHTBENCH_COMMAND_TOKEN", "NIGHTBENCH_TRACKER_TOKEN", "SLURM_*"),
    *("NIGHTBENCH_SSH_KEY", "SSH_AUTH_SOCK"),
)
# The settings among them that are paths, which may be relative to the folder of the night.
_PROGRAMS = ("VLLM_EXECUTABLE", "LLAMA_SERVER", "LM_EVAL", "VLLM_RS")
_PATHS = (
    "CACHE",
    "DEPLOYED_SUITES",
    "DO_CA",
    "COMMAND_CLOUD",
    "SSH_KEY",
    "SSH_KNOWN_HOSTS",
    "MACHINE_LOCK",
    *_PROGRAMS,
)
PATHS = tuple(f"NIGHTBENCH_{name}" for name in _PATHS)


@dataclass(frozen=True)
class WatchedLease:
    """The lease, the ledger that lists it, and the process that took it."""

    ledger_file: Path
    lease_id: str
    owner_pid: int
    owner_start: str


def start_watchdog(ledger_file: Path, lease_id: str, ready_s: float = READY_S) -> None:
    """Start the watchdog of a lease that this process takes, unless it runs, and return once it is ready.

    Raises LeaseError where it cannot be started, or is not ready in time: then it is ended.
    """
    data = ledger_file.absolute().parent
    if is_watched(data, lease_id):
        return
    owner = (str(os.getpid()), own_start())
    argv = own_program("infra.leases.watchdog", str(ledger_file.absolute()), lease_id, *owner)
    environment = from_any_folder(child_environment({"NIGHTBENCH_DATA": str(data)}, NEEDED), PATHS)
    for mark in (detached.MARK, detached.OWNER):  # what ends a killed night's processes must not end this one
        environment.pop(mark, None)
    try:
        pid_file_of(data, lease_id).parent.mkdir(exist_ok=True)
        ready_mark_of(data, lease_id).unlink(missing_ok=True)
        log_from = log_of(data).stat().st_size if log_of(data).exists() else 0
        session = detached.start_detached(argv, environment, pid_file_of(data, lease_id), log_of(data), cwd=FOLDER)
    except OSError as error:
        raise LeaseError(
            f"the watchdog of lease {lease_id} cannot be started ({error}), and nothing is rented without it: free "
            f"memory or disk space, or make {data} writable"
        ) from error
    _wait_until_ready(data, lease_id, session, ready_s, log_from)


def _wait_until_ready(data: Path, lease_id: str, session: int, ready_s: float, log_from: int) -> None:
    def is_ready_or_gone() -> bool:
        return ready_mark_of(data, lease_id).exists() or not detached.is_alive(session)

    poll(SystemClock(), READY_LOOK_S, is_ready_or_gone, ready_s)
    if ready_mark_of(data, lease_id).exists() and detached.is_alive(session):
        return
    how = f"is not ready after {ready_s:g} s" if detached.is_alive(session) else "exited as it started"
    detached.end_session(session, patience_s=0.0)
    remove_files(data, lease_id)
    with log_of(data).open("rb") as log:
        log.seek(log_from)
        reported = log.read().decode(errors="replace").strip()[-LOG_END:]
    raise LeaseError(
        f"the watchdog of lease {lease_id} {how}, and nothing is rented without it: see {log_of(data)}, "
        f"which ends with: {reported or 'nothing'}"
    )


def pid_file_of(data: Path, lease_id: str) -> Path:
    """The pid file of a lease's watchdog."""
    return data / "watchdogs" / f"{lease_id}.pid"


def ready_mark_of(data: Path, lease_id: str) -> Path:
    """The file that a lease's watchdog creates once it has read the lease."""
    return data / "watchdogs" / f"{lease_id}.ready"


def remove_files(data: Path, lease_id: str) -> None:
    """Delete the files of a lease's watchdog, which has ended or is about to."""
    for file in (pid_file_of(data, lease_id), ready_mark_of(data, lease_id)):
        file.unlink(missing_ok=True)


def log_of(data: Path) -> Path:
    """The log of every watchdog of a data folder."""
    return data / "watchdog.log"


def is_watched(data: Path, lease_id: str) -> bool:
    """Whether the watchdog of a lease runs on this computer."""
    return detached.is_running(pid_file_of(data, lease_id))


def watch(watched: WatchedLease, clock: Clock, release: Callable[[int | None], object], say: Say) -> bool:
    """Return once the ledger shows the lease as released; `release` is called, once it is due, until that is so.

    It gets the number of the attempt that is due, since its night may rent another machine before it begins; None
    where the ledger cannot be read. False: it was not released in a week, after which the watchdog gives up.

    It is due when its owner has exited or it has expired, and until its night rents another machine for it. A ledger
    that cannot be read, or lacks the lease, changes nothing: the deadline last read counts.
    """
    deadline = _Deadline(clock)

    def released_or_in_use() -> str | None:
        lease = _read(watched)  # before it is found due: a later attempt would not be
        why = _why_over(watched, deadline)
        if why is None:  # its night has rented again meanwhile, and a release would end that machine
            return IN_USE
        if why != "released":
            release(None if lease is None else lease.attempt)
        return "released" if is_released(watched) else None

    outcome: str | None = IN_USE
    while outcome == IN_USE:
        why = poll(clock, LOOK_EVERY_S, lambda: _why_over(watched, deadline))
        if why == "released":
            return True
        say(f"lease {watched.lease_id}: {why}; releasing its machine")
        outcome = poll(clock, growing(PAUSE_S, PAUSE_MAX_S), released_or_in_use, GIVE_UP_S)
        alarm = f"ALARM: NOT RELEASED after {GIVE_UP_S / 86400:.0f} days, STILL BILLED"
        say(f"lease {watched.lease_id}: {outcome or alarm}")
    return outcome is not None


def _why_over(watched: WatchedLease, deadline: "_Deadline") -> str | None:
    """Why a lease is over, "released" where its release is recorded; None while its night may use it."""
    is_alone = has_exited(watched.owner_pid, watched.owner_start)  # first: it may release just before its exit
    lease = _read(watched)
    if is_released(watched):
        return "released"
    if is_alone:
        return f"process {watched.owner_pid} exited without releasing it"
    return "it has expired" if deadline.has_passed(lease) else None


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
            # It has just been requested. Its length needs no wall clock, which may differ from the cloud's.
            left_s = lease.lasts_s or (lease.expires_at - self.clock.now()).total_seconds()
            self.due_s = self.clock.monotonic() + left_s + GRACE_S
        return self.clock.monotonic() >= self.due_s


@dataclass(frozen=True)
class _Lease:
    expires_at: datetime
    lasts_s: float | None
    attempt: int


def _read(watched: WatchedLease) -> _Lease | None:
    """The lease in the ledger, None where it cannot be read there."""
    row = _first(watched, "SELECT expires_at, lasts_s, attempt FROM leases WHERE lease_id = ?")
    if row is None:
        return None
    expires_at, lasts_s, attempt = row
    try:
        lease = _Lease(datetime.fromisoformat(expires_at), None if lasts_s is None else float(lasts_s), int(attempt))
    except (OverflowError, TypeError, ValueError):
        return None
    return None if lease.expires_at.tzinfo is None else lease


def _first(watched: WatchedLease, question: str) -> Any:
    """The first row of an answer, by SQL alone: the ledger's own module is many times as large as this process."""
    try:
        with closing(sqlite3.connect(f"{watched.ledger_file.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(question, (watched.lease_id,)).fetchone()
    except sqlite3.Error:
        return None


def is_released(watched: WatchedLease) -> bool:
    """Whether the ledger shows the lease as released; a ledger that replaced a lost one has only the release."""
    row = _first(watched, "SELECT state FROM leases WHERE lease_id = ?")
    if row is not None:
        return bool(row[0] == "released")
    question = "SELECT 1 FROM releases WHERE lease_id = ?"
    return _first(watched, question) is not None


class _SinceBoot(SystemClock):
    """A clock that counts on while the computer is suspended, as the bill does."""

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def reap_argv(lease_id: str, attempt: int | None) -> tuple[str, ...]:
    """The command line that releases a lease, or this attempt of it only."""
    only = () if attempt is None else ("--attempt", str(attempt))
    return own_program("flows", "reap", "--lease", lease_id, *only)


def _release(lease_id: str, attempt: int | None) -> None:
    """Release the lease in a process of its own, which is as new as the code on the disk is then."""
    try:
        subprocess.run(reap_argv(lease_id, attempt), env=child_environment(also=NEEDED), cwd=FOLDER, check=False)
    except OSError as error:
        _say(f"lease {lease_id}: `nightbench reap` could not be started: {error}")


def guard(watched: WatchedLease, clock: Clock, release: Callable[[int | None], object], say: Say) -> None:
    """Watch a lease to its end, and send a message where it gives up.

    What that needs is imported only then, since a watchdog that waits stays small.
    """
    if watch(watched, clock, release, say):
        return
    from infra.notices.leases import tell_that_it_gave_up  # noqa: PLC0415
    from infra.settings import Settings  # noqa: PLC0415

    tell_that_it_gave_up(Settings(), watched.ledger_file, watched.lease_id, GIVE_UP_S / 86400, say)


def _say(message: str) -> None:
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {message}\n")
    sys.stdout.flush()


def main(ledger_file: str, lease_id: str, owner_pid: str, owner_start: str) -> None:
    """Watch one lease to its end."""
    watched = WatchedLease(Path(ledger_file), lease_id, int(owner_pid), owner_start)
    data, clock = watched.ledger_file.parent, _SinceBoot()
    if poll(clock, READY_LOOK_S, lambda: _read(watched), READY_S) is not None:
        with contextlib.suppress(OSError):  # then the process that started it ends it, and rents nothing
            ready_mark_of(data, lease_id).touch()
    guard(watched, clock, partial(_release, lease_id), _say)
    remove_files(data, lease_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
