"""The volumes that were requested, in a table of the ledger's file, written and synced before each call.

A volume is found by its name. The name is on disk before the request is sent: where the reply and the process are lost,
the next night searches for that name and creates no second volume.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from infra.clock import Clock, SystemClock
from infra.ledger.database import transaction

State = Literal["intended", "made"]
_SCHEMA = """
CREATE TABLE IF NOT EXISTS volumes (
  cloud TEXT NOT NULL,
  name TEXT NOT NULL,
  size_gib INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intended', 'made', 'over')),
  volume_id TEXT,
  intended_at TEXT NOT NULL,
  ended_at TEXT,
  account TEXT,
  PRIMARY KEY (cloud, name)
)
"""


@dataclass(frozen=True)
class RecordedVolume:
    """A volume that was requested and is not recorded as gone; its id is None until the cloud replied.

    Its time is None where the record's date cannot be read; its name still finds it.
    """

    cloud: str
    name: str
    size_gib: int
    state: State
    volume_id: str | None
    intended_at: datetime | None
    account: str | None = None  # that it was requested in; None: unknown, as in rows of earlier versions


@dataclass(frozen=True)
class VolumePeriod:
    """From when until when a volume was billed; None: it still is."""

    name: str
    volume_id: str
    size_gib: float
    began_at: datetime
    ended_at: datetime | None


class VolumeBook:
    """The volumes of one data folder's ledger. Every write is on disk when its method returns.

    Every method raises LedgerError where the file cannot be read or written.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with transaction(self.path, "no volume is created without it") as connection:
            connection.execute(_SCHEMA)
            if "account" not in [row["name"] for row in connection.execute("PRAGMA table_info(volumes)").fetchall()]:
                connection.execute("ALTER TABLE volumes ADD COLUMN account TEXT")  # a ledger of an earlier version
            yield connection

    def intend(self, cloud: str, name: str, size_gib: int, account: str | None = None) -> None:
        """Record that this volume is about to be requested."""
        values = (cloud, name, size_gib, self._clock.now().isoformat(), account)
        with self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO volumes (cloud, name, size_gib, state, intended_at, account) "
                "VALUES (?, ?, ?, 'intended', ?, ?)",
                values,
            )

    def mark_made(self, cloud: str, name: str, volume_id: str) -> None:
        """Record that the cloud has created it."""
        with self._open() as connection:
            connection.execute(
                "UPDATE volumes SET state = 'made', volume_id = ? WHERE cloud = ? AND name = ? AND state <> 'over'",
                (volume_id, cloud, name),
            )

    def mark_gone(self, cloud: str, name: str) -> None:
        """Record that it is gone, or was never created."""
        with self._open() as connection:
            connection.execute(
                "UPDATE volumes SET state = 'over', ended_at = coalesce(ended_at, ?) WHERE cloud = ? AND name = ?",
                (self._clock.now().isoformat(), cloud, name),
            )

    def periods(self, cloud: str | None = None) -> tuple[list[VolumePeriod], list[str]]:
        """When every volume, or those of a cloud, were billed; and the names of those whose record cannot be read."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT name, volume_id, size_gib, intended_at, ended_at FROM volumes "
                "WHERE volume_id IS NOT NULL AND (? IS NULL OR cloud = ?) ORDER BY intended_at, name",
                (cloud, cloud),
            ).fetchall()
        readable, unreadable = list[VolumePeriod](), list[str]()
        for row in rows:
            try:
                readable.append(_period(row))
            except (TypeError, ValueError):
                unreadable.append(str(row["name"]))
        return readable, unreadable

    def open_volumes(self, cloud: str | None = None) -> list[RecordedVolume]:
        """Every volume that is not recorded as gone, or those of one cloud, oldest first."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT cloud, name, size_gib, state, volume_id, intended_at, account FROM volumes "
                "WHERE state <> 'over' AND (? IS NULL OR cloud = ?) ORDER BY intended_at, name",
                (cloud, cloud),
            ).fetchall()
        return [_on_record(row) for row in rows]


def _period(row: sqlite3.Row) -> VolumePeriod:
    """A row as a value; TypeError or ValueError where it cannot be read."""
    ended_at = None if row["ended_at"] is None else _moment(row["ended_at"])
    return VolumePeriod(
        str(row["name"]), str(row["volume_id"]), float(row["size_gib"]), _moment(row["intended_at"]), ended_at
    )


def _on_record(row: sqlite3.Row) -> RecordedVolume:
    try:
        intended_at = _moment(row["intended_at"])
    except ValueError:
        intended_at = None
    return RecordedVolume(**{**dict(row), "intended_at": intended_at})


def _moment(recorded: object) -> datetime:
    """A date of a record; ValueError where it cannot be read, or has no time zone."""
    moment = datetime.fromisoformat(str(recorded))
    if moment.tzinfo is None:
        msg = f"{recorded} has no time zone"
        raise ValueError(msg)
    return moment
