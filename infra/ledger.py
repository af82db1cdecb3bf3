"""What we meant to rent, what we rent, what we gave back: one SQLite file, written and synced before each call."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

_SCHEMA = """
CREATE TABLE IF NOT EXISTS leases (
  lease_id TEXT PRIMARY KEY,
  night TEXT NOT NULL,
  cloud TEXT NOT NULL,
  machine_id TEXT,
  state TEXT NOT NULL CHECK (state IN ('intended', 'held', 'released')),
  usd_per_hour REAL NOT NULL CHECK (usd_per_hour >= 0),
  owner_pid INTEGER NOT NULL,
  owner_began_at REAL NOT NULL,
  intended_at TEXT NOT NULL,
  rented_at TEXT,
  expires_at TEXT NOT NULL,
  released_at TEXT
)
"""


@dataclass(frozen=True)
class Lease:
    """One rental. `machine_id` is None until the cloud answered; times are aware UTC."""

    lease_id: str
    night: str
    cloud: str
    machine_id: str | None
    state: str
    usd_per_hour: float
    owner_pid: int
    owner_began_at: float
    intended_at: datetime
    rented_at: datetime | None
    expires_at: datetime
    released_at: datetime | None

    def is_orphan(self) -> bool:
        """Whether the process that took this lease is gone; its pid may belong to somebody else by now."""
        try:
            return abs(psutil.Process(self.owner_pid).create_time() - self.owner_began_at) > 1.0
        except psutil.NoSuchProcess:
            return True

    def is_overdue(self, now: datetime) -> bool:
        """Whether this lease should have been given back by now."""
        return now > self.expires_at

    def usd(self, now: datetime) -> float:
        """What it has cost until now, or until its release."""
        if self.rented_at is None:
            return 0.0
        return ((self.released_at or now) - self.rented_at).total_seconds() / 3600 * self.usd_per_hour


class Ledger:
    """The ledger of one data folder. Every write is on disk when its method returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        with self._open() as connection:
            connection.execute(_SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = FULL")
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def intend(self, lease_id: str, *, night: str, cloud: str, usd_per_hour: float, expires_at: datetime) -> None:
        """Write down that a machine is about to be rented by this process."""
        began_at = psutil.Process().create_time()
        with self._open() as connection:
            connection.execute(
                "INSERT INTO leases (lease_id, night, cloud, state, usd_per_hour, owner_pid, owner_began_at,"
                " intended_at, expires_at) VALUES (?, ?, ?, 'intended', ?, ?, ?, ?, ?)",
                (lease_id, night, cloud, usd_per_hour, os.getpid(), began_at, _now(), expires_at.isoformat()),
            )

    def hold(self, lease_id: str, machine_id: str) -> None:
        """Write down that the cloud gave us this machine."""
        with self._open() as connection:
            connection.execute(
                "UPDATE leases SET state = 'held', machine_id = ?, rented_at = ? WHERE lease_id = ?",
                (machine_id, _now(), lease_id),
            )

    def release(self, lease_id: str) -> None:
        """Write down that the machine is gone; the first time counts, repeating changes nothing."""
        with self._open() as connection:
            connection.execute(
                "UPDATE leases SET state = 'released', released_at = ? WHERE lease_id = ? AND state <> 'released'",
                (_now(), lease_id),
            )

    def leases(self) -> list[Lease]:
        """Every lease there ever was, oldest first."""
        with self._open() as connection:
            rows = connection.execute("SELECT * FROM leases ORDER BY intended_at").fetchall()
        return [_lease(dict(row)) for row in rows]

    def open_leases(self) -> list[Lease]:
        """What is not known to be given back."""
        return [lease for lease in self.leases() if lease.state != "released"]

    def lease(self, lease_id: str) -> Lease:
        """One lease; KeyError where there is none."""
        found = [lease for lease in self.leases() if lease.lease_id == lease_id]
        if not found:
            raise KeyError(lease_id)
        return found[0]


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _lease(row: dict[str, Any]) -> Lease:
    times = ("intended_at", "rented_at", "expires_at", "released_at")
    return Lease(**{**row, **{name: row[name] and datetime.fromisoformat(row[name]) for name in times}})
