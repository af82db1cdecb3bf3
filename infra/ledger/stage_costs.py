"""The start and end of each stage of a lease, in a table of the ledger's file, and the cost of each stage."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bench.cost.lease_cost import Rental, Span, stage_costs
from bench.errors import LedgerError
from bench.record import StageCost
from infra.clock import Clock, SystemClock
from infra.ledger.database import transaction
from infra.ledger.lease import Lease

_SCHEMA = """
CREATE TABLE IF NOT EXISTS stages (
  number INTEGER PRIMARY KEY,
  lease_id TEXT NOT NULL,
  stage TEXT NOT NULL,
  run TEXT,
  started_at TEXT NOT NULL,
  ended_at TEXT
)
"""


@dataclass
class UnderWay:
    """A stage that has begun; it may end before its block does."""

    began_at: datetime
    ended_at: datetime | None = None

    def lasted(self, seconds: float) -> None:
        """Set how long the stage took."""
        self.ended_at = self.began_at + timedelta(seconds=seconds)


class StageBook:
    """The stages of every lease of one data folder."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        path.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with transaction(self._path, "no stage is started without it") as connection:
            connection.execute(_SCHEMA)
            yield connection

    @contextmanager
    def stage(self, lease_id: str, stage: str, run: str | None = None) -> Iterator[UnderWay]:
        """Record the start and the end of this block; stages may overlap, and may end before their block.

        Raises LedgerError before the block where its start cannot be written. An end that cannot be written is ignored,
        since the block's result matters more: the stage then seems to last as long as its lease.
        """
        with self._open() as connection:
            began = self._clock.now()
            values = (lease_id, stage, run, began.isoformat())
            done = connection.execute(
                "INSERT INTO stages (lease_id, stage, run, started_at) VALUES (?, ?, ?, ?)", values
            )
            number = done.lastrowid
        under_way = UnderWay(began)
        try:
            yield under_way
        finally:
            with suppress(LedgerError), self._open() as connection:
                ended_at = min(under_way.ended_at or self._clock.now(), self._clock.now()).isoformat()
                connection.execute("UPDATE stages SET ended_at = ? WHERE number = ?", (ended_at, number))

    def spans(self, lease_id: str) -> list[Span]:
        """Every stage of a lease, in the order of their start."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT stage, run, started_at, ended_at FROM stages WHERE lease_id = ? ORDER BY number", (lease_id,)
            ).fetchall()
        return [Span(stage, run, _moment(began), ended and _moment(ended)) for stage, run, began, ended in rows]

    def costs(self, lease: Lease, now: datetime | None = None) -> tuple[StageCost, ...]:
        """The cost of each stage of a lease; empty where no machine was rented."""
        if lease.rented_at is None:
            return ()
        rental = Rental(lease.usd_per_hour, lease.rented_at, lease.released_at)
        return stage_costs(rental, self.spans(lease.lease_id), now or self._clock.now())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
