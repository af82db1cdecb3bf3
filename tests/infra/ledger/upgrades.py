"""Ledgers of earlier versions, and an upgrade that is killed at a chosen moment."""

import os
import signal
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path

from infra.ledger.database import transaction
from infra.ledger.schema import bring_up_to_date

# Columns that a version did not have.
NEWER_COLUMNS = {
    0: ("owner_start", "image", "machine", "account", "cloud_ahead_s", "lasts_s"),
    1: ("machine", "account", "cloud_ahead_s", "lasts_s"),
    2: ("account", "cloud_ahead_s", "lasts_s"),
}


def make_older(ledger: Path, version: int = 0) -> None:
    """Turn a ledger, with all its rows, into one of the first version, or of this one."""
    with sqlite3.connect(ledger) as connection:
        for column in NEWER_COLUMNS[version]:
            connection.execute(f"ALTER TABLE leases DROP COLUMN {column}")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def upgrade_killed_before_statement(ledger: Path, number: int) -> None:
    """Upgrade a ledger, and kill this process before this statement; it has fewer statements if this returns."""
    _upgrade(ledger, lambda connection: connection.set_trace_callback(_killer(number)))


def upgrade_killed_before_instruction(ledger: Path, number: int) -> None:
    """The same, before this instruction of SQLite's virtual machine."""
    _upgrade(ledger, lambda connection: connection.set_progress_handler(_killer(number), 1))


def _upgrade(ledger: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
    with transaction(ledger, "a test") as connection:
        prepare(connection)
        bring_up_to_date(connection)


def _killer(number: int) -> Callable[..., None]:
    steps = count()

    def step(*_statement: str) -> None:
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return step
