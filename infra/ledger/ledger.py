"""The ledger of leases: what we are about to rent, have rented and have released, written before each call."""

import os
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import psutil

from bench.errors import BudgetError, LedgerError
from bench.record import AttemptOutcome
from infra.clock import Clock, SystemClock
from infra.ledger.database import transaction, unusable
from infra.ledger.lease import Lease
from infra.ledger.month import NOTHING_KEPT, KeptCosts, month_spending
from infra.ledger.schema import (
    BEGIN_ATTEMPT,
    HOLD_ATTEMPT,
    HOLD_LEASE,
    INTEND,
    MARK_GONE,
    MARK_RELEASED,
    MARK_RELEASING,
    bring_up_to_date,
    values_of,
)
from infra.processes.identity import own_start
from nights.durable import make_folder

REFUSED = "nothing is rented without it"


@dataclass(frozen=True)
class Intent:
    """A machine that is about to be requested."""

    night: str
    cloud: str
    usd_per_hour: float
    expires_at: datetime
    name: str = ""
    attempt: int = 1
    kind: str = ""
    region: str | None = None
    is_spot: bool = False
    budget_usd: float | None = None
    image: str | None = None
    machine: str | None = None  # its name in a suite of several machines
    account: str | None = None  # at the cloud; None: it has none, or does not say
    cloud_ahead_s: float = 0.0  # the cloud's clock, minus this computer's
    lasts_s: float | None = None  # from this request to the expiry
    month_usd_max: float | None = None  # of all in this calendar month; None: no limit
    kept: KeptCosts = NOTHING_KEPT  # what counts in this month beside leases


# Outcomes of an attempt after which no machine can exist.
WITHOUT_MACHINE: frozenset[AttemptOutcome] = frozenset({"no-capacity", "refused", "over-limit"})


@dataclass(frozen=True)
class Attempt:
    """One attempt to rent: where, at what price, and its outcome, which is None while it is unknown."""

    lease_id: str
    attempt: int
    name: str
    kind: str
    region: str | None
    is_spot: bool
    usd_per_hour: float
    machine_id: str | None
    began_at: datetime
    rented_at: datetime | None
    ended_at: datetime | None
    outcome: AttemptOutcome | None
    reason: str | None


Row = TypeVar("Row", Lease, Attempt)


class Ledger:
    """The ledger of one data folder. Every write is on disk when its method returns.

    Every method raises LedgerError where the file cannot be read or written.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        try:
            make_folder(path.parent)
        except OSError as error:
            raise unusable(path, error, REFUSED) from error
        with self._open() as connection:
            bring_up_to_date(connection)

    @property
    def path(self) -> Path:
        """The ledger's file, which also holds the tables of stages and volumes."""
        return self._path

    def _open(self) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self._path, REFUSED)

    def _now(self) -> str:
        return self._clock.now().isoformat()

    def intend(self, lease_id: str, intent: Intent) -> None:
        """Record that this process is about to request a machine; a further attempt replaces the last one.

        Raises BudgetError, with nothing recorded, where the lease would exceed the month's limit. The check and the
        record are one transaction, so that two processes cannot both take what is left.
        """
        now = self._now()
        values = {**asdict(intent), "expires_at": intent.expires_at.isoformat(), "lease_id": lease_id, "now": now}
        pid, began = os.getpid(), psutil.Process().create_time()
        owner = {"host": socket.gethostname(), "pid": pid, "began": began, "start": own_start()}
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            why = self._why_over_month(connection, lease_id, intent)
            if why is not None:
                raise BudgetError(f"nothing is rented: {why}")
            connection.execute(INTEND, {**values, **owner})
            connection.execute(BEGIN_ATTEMPT, values)

    def why_over_month(self, lease_id: str, intent: Intent) -> str | None:
        """Why a machine of this lease that was created at this price exceeds the month's limit; None where it fits."""
        with self._open() as connection:
            return self._why_over_month(connection, lease_id, intent)

    def _why_over_month(self, connection: sqlite3.Connection, lease_id: str, intent: Intent) -> str | None:
        """Why this intent would exceed the month's limit, as a sentence; LedgerError for an unreadable lease."""
        if intent.month_usd_max is None or not intent.usd_per_hour:
            return None
        now = self._clock.now()
        lasts_s = (intent.expires_at - now).total_seconds() if intent.lasts_s is None else intent.lasts_s
        rows = connection.execute("SELECT * FROM leases WHERE lease_id <> ?", (lease_id,)).fetchall()
        earlier = connection.execute("SELECT earlier_usd FROM leases WHERE lease_id = ?", (lease_id,)).fetchone()
        usd = intent.usd_per_hour * lasts_s / 3600 + (earlier["earlier_usd"] if earlier else 0.0)
        leases = [self._as(Lease, row) for row in rows]
        return month_spending(leases, now, intent.month_usd_max, intent.kept).why_exceeded(usd)

    def hold(self, lease_id: str, machine_id: str, usd_per_hour: float | None = None) -> None:
        """Record the machine that the cloud created, and its price where it differs from the offer."""
        with self._open() as connection:
            values = {"machine_id": machine_id, "now": self._now(), "usd_per_hour": usd_per_hour, "lease_id": lease_id}
            connection.execute(HOLD_LEASE, values)
            connection.execute(HOLD_ATTEMPT, values)

    def set_address(self, lease_id: str, address: str | None) -> None:
        """Record the address of a machine that is active."""
        with self._open() as connection:
            connection.execute("UPDATE leases SET address = ? WHERE lease_id = ?", (address, lease_id))

    def end_attempt(
        self, lease_id: str, outcome: AttemptOutcome, reason: str | None = None, at: datetime | None = None
    ) -> None:
        """Record the outcome of the lease's last attempt.

        The cost of its machine until `at`, or until now, stays part of the lease's cost.
        """
        lease = self.lease(lease_id)
        with self._open() as connection:
            connection.execute(
                "UPDATE attempts SET outcome = ?, reason = ?, ended_at = ? WHERE lease_id = ? AND attempt = ?",
                (outcome, reason, self._now(), lease_id, lease.attempt),
            )
            if outcome != "rented":
                connection.execute(
                    "UPDATE leases SET earlier_usd = ?, rented_at = NULL, machine_id = NULL WHERE lease_id = ?",
                    (lease.usd(at or self._clock.now()), lease_id),
                )

    def record_heartbeat(self, lease_id: str) -> None:
        """Record that the night which holds this lease is running."""
        with self._open() as connection:
            connection.execute("UPDATE leases SET heartbeat_at = ? WHERE lease_id = ?", (self._now(), lease_id))

    def mark_releasing(self, lease_id: str, attempt: int | None = None) -> None:
        """Record that the machine is being released; only `mark_released` ends this state.

        With an attempt, this and the two below record nothing once a later one has begun: its machine is in use.
        """
        with self._open() as connection:
            connection.execute(MARK_RELEASING, (lease_id, attempt))

    def mark_gone(self, lease_id: str, at: datetime, attempt: int | None = None) -> None:
        """Record since when the machine is no longer billed, though keys or volumes may be left to delete."""
        with self._open() as connection:
            connection.execute(MARK_GONE, (at.isoformat(), lease_id, attempt))

    def mark_released(self, lease_id: str, attempt: int | None = None) -> None:
        """Record that nothing of the lease is left; the first time counts, repeating changes nothing."""
        with self._open() as connection:
            connection.execute(MARK_RELEASED, (self._now(), lease_id, attempt))

    def leases(self) -> list[Lease]:
        """Every lease, oldest first; LedgerError where one of them cannot be read."""
        readable, unreadable = self.readable_leases()
        if unreadable:
            raise LedgerError(next(iter(unreadable.values())))
        return readable

    def readable_leases(self) -> tuple[list[Lease], dict[str, str]]:
        """The leases that this version can read, oldest first; of each other one, by its id, why not."""
        with self._open() as connection:
            rows = connection.execute("SELECT * FROM leases ORDER BY intended_at").fetchall()
        readable, unreadable = list[Lease](), dict[str, str]()
        for row in rows:
            try:
                readable.append(self._as(Lease, row))
            except LedgerError as error:
                unreadable[str(row["lease_id"])] = str(error)
        return readable, unreadable

    def _as(self, kind: type[Row], row: sqlite3.Row) -> Row:
        """A row as a value; columns that a newer version has added are ignored."""
        known = {field.name for field in fields(kind)}
        try:
            values = {name: value for name, value in values_of(row).items() if name in known}
            _require_no_blob(values)
            return kind(**values)
        except (TypeError, ValueError) as error:
            raise LedgerError(
                f"lease {row['lease_id']} in {self._path} cannot be read ({error}): a newer version of Nightbench may "
                "have written it; use that version"
            ) from error

    def open_leases(self) -> list[Lease]:
        """Every lease that is not recorded as released."""
        return [lease for lease in self.leases() if lease.state != "released"]

    def own_leases(self, night: str | None = None, machine: str | None = None) -> list[Lease]:
        """Every open lease that this process took, or those of one night, or of one of its machines.

        Rows of a newer version are not its own.
        """
        leases, _unreadable = self.readable_leases()
        asked = [one for one in leases if night in (None, one.night) and machine in (None, one.machine)]
        return [one for one in asked if one.state != "released" and one.is_own()]

    def lease(self, lease_id: str) -> Lease:
        """One lease; KeyError where there is none."""
        with self._open() as connection:
            row = connection.execute("SELECT * FROM leases WHERE lease_id = ?", (lease_id,)).fetchone()
        if row is None:
            raise KeyError(lease_id)
        return self._as(Lease, row)

    def attempts(self, lease_id: str | None = None) -> list[Attempt]:
        """Every attempt to rent, or those of one lease, oldest first: a history of capacity."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT * FROM attempts WHERE ? IS NULL OR lease_id = ? ORDER BY began_at, attempt",
                (lease_id, lease_id),
            ).fetchall()
        return [self._as(Attempt, row) for row in rows]


def _require_no_blob(values: Mapping[str, object]) -> None:
    """Raise TypeError where a value is a BLOB: no column of ours has one, so the file is damaged there."""
    blobs = [name for name, value in values.items() if isinstance(value, bytes)]
    if blobs:
        msg = f"{blobs[0]} is a BLOB"
        raise TypeError(msg)
