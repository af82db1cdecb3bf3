"""The ledger's tables of leases and attempts, their statements, and the upgrade of older files."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bench.errors import LedgerError

# Of the tables below, kept as the file's user_version; a change of them raises it. 0: older, or no tables yet.
VERSION = 3
SCHEMA = """
CREATE TABLE IF NOT EXISTS leases (
  lease_id TEXT PRIMARY KEY,
  night TEXT NOT NULL,
  cloud TEXT NOT NULL,
  account TEXT,
  name TEXT,
  attempt INTEGER NOT NULL DEFAULT 1,
  machine_id TEXT,
  address TEXT,
  kind TEXT,
  region TEXT,
  is_spot INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL CHECK (state IN ('intended', 'held', 'releasing', 'released')),
  usd_per_hour REAL NOT NULL CHECK (usd_per_hour >= 0),
  budget_usd REAL,
  image TEXT,
  machine TEXT,
  earlier_usd REAL NOT NULL DEFAULT 0,
  owner_host TEXT,
  owner_pid INTEGER NOT NULL,
  owner_began_at REAL NOT NULL,
  owner_start TEXT,
  heartbeat_at TEXT,
  intended_at TEXT NOT NULL,
  rented_at TEXT,
  expires_at TEXT NOT NULL,
  cloud_ahead_s REAL NOT NULL DEFAULT 0,
  lasts_s REAL,
  released_at TEXT
);
CREATE TABLE IF NOT EXISTS attempts (
  lease_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  region TEXT,
  is_spot INTEGER NOT NULL,
  usd_per_hour REAL NOT NULL,
  machine_id TEXT,
  began_at TEXT NOT NULL,
  rented_at TEXT,
  ended_at TEXT,
  outcome TEXT,
  reason TEXT,
  PRIMARY KEY (lease_id, attempt)
);
"""
INTEND = """
INSERT INTO leases (lease_id, night, cloud, account, name, attempt, kind, region, is_spot, state, usd_per_hour,
  budget_usd, image, machine, owner_host, owner_pid, owner_began_at, owner_start, heartbeat_at,
  intended_at, expires_at, cloud_ahead_s, lasts_s)
VALUES (:lease_id, :night, :cloud, :account, :name, :attempt, :kind, :region, :is_spot, 'intended', :usd_per_hour,
  :budget_usd, :image, :machine, :host, :pid, :began, :start, :now, :now, :expires_at,
  :cloud_ahead_s, :lasts_s)
ON CONFLICT (lease_id) DO UPDATE SET name = excluded.name, attempt = excluded.attempt, kind = excluded.kind,
  region = excluded.region, is_spot = excluded.is_spot, state = 'intended', usd_per_hour = excluded.usd_per_hour,
  image = excluded.image, heartbeat_at = excluded.heartbeat_at, intended_at = excluded.intended_at,
  expires_at = excluded.expires_at, cloud_ahead_s = excluded.cloud_ahead_s, lasts_s = excluded.lasts_s,
  account = coalesce(excluded.account, account), machine_id = NULL, address = NULL, rented_at = NULL, released_at = NULL
"""
BEGIN_ATTEMPT = """
INSERT INTO attempts (lease_id, attempt, name, kind, region, is_spot, usd_per_hour, began_at)
VALUES (:lease_id, :attempt, :name, :kind, :region, :is_spot, :usd_per_hour, :now)
"""
HOLD_LEASE = """
UPDATE leases SET state = 'held', machine_id = :machine_id, rented_at = coalesce(rented_at, :now), released_at = NULL,
  usd_per_hour = coalesce(:usd_per_hour, usd_per_hour)
WHERE lease_id = :lease_id
"""
HOLD_ATTEMPT = """
UPDATE attempts SET machine_id = :machine_id, rented_at = coalesce(rented_at, :now),
  usd_per_hour = coalesce(:usd_per_hour, usd_per_hour)
WHERE lease_id = :lease_id AND attempt = (SELECT attempt FROM leases WHERE lease_id = :lease_id)
"""
# Without an attempt, whichever is the last.
MARK_RELEASING = """
UPDATE leases SET state = 'releasing' WHERE lease_id = ? AND attempt = coalesce(?, attempt) AND state <> 'released'
"""
MARK_GONE = """
UPDATE leases SET released_at = coalesce(released_at, ?) WHERE lease_id = ? AND attempt = coalesce(?, attempt)
"""
MARK_RELEASED = """
UPDATE leases SET state = 'released', released_at = coalesce(released_at, ?)
WHERE lease_id = ? AND attempt = coalesce(?, attempt)
"""
RESTORE = """
INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (lease_id) DO NOTHING
"""
TIMESTAMPS = {"heartbeat_at", "intended_at", "rented_at", "expires_at", "released_at", "began_at", "ended_at"}


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Create the tables; those of an older ledger are upgraded with all their rows, in the caller's transaction.

    Raises LedgerError for the ledger of a newer version, which is left as it is.
    """
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")  # whoever else opens it waits, and then finds it upgraded
    found = _version(connection)
    if found > VERSION:
        file = connection.execute("PRAGMA database_list").fetchone()["file"]
        raise LedgerError(
            f"the ledger {file} has version {found} and this Nightbench reads version {VERSION} at most: "
            "use the Nightbench that wrote it, or a newer one"
        )
    if found < VERSION:
        _upgrade(connection)


def _upgrade(connection: sqlite3.Connection) -> None:
    if _columns(connection, "leases"):
        connection.execute("ALTER TABLE leases RENAME TO replaced")
    for statement in filter(str.strip, SCHEMA.split(";")):
        connection.execute(statement)
    if _columns(connection, "replaced"):
        _restore(connection, connection.execute("SELECT * FROM replaced").fetchall())
        connection.execute("DROP TABLE replaced")
    if _columns(connection, "older"):  # what earlier versions left where their upgrade was killed
        _restore(connection, connection.execute("SELECT * FROM older").fetchall())
        connection.execute("DROP TABLE older")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _restore(connection: sqlite3.Connection, leases: Sequence[sqlite3.Row]) -> None:
    """Write the leases of an older table that are not there yet; a column that it lacks gets its default."""
    columns = _columns(connection, "leases").items()
    for lease in map(dict, leases):
        connection.execute(RESTORE, [lease.get(name, default) for name, default in columns])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str | None]:
    """The columns of a table, in order, and their defaults; none if it does not exist."""
    # Read at once: a cursor in a frame of an interrupted read keeps its lock while the exception lives.
    return dict(connection.execute("SELECT name, dflt_value FROM pragma_table_info(?)", (table,)).fetchall())


def values_of(row: sqlite3.Row) -> dict[str, Any]:
    """A row of either table, its timestamps as datetimes."""
    values = {name: row[name] for name in row.keys()}  # noqa: SIM118  iterating over a Row gives its values
    for name in TIMESTAMPS & values.keys():
        values[name] = values[name] and datetime.fromisoformat(values[name])
    return {**values, "is_spot": bool(values["is_spot"])}
