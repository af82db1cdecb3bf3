"""A ledger that is no longer one: set aside, and an empty one in its place, since giving back needs no record."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from bench.errors import LedgerError
from infra.clock import Clock
from infra.ledger.ledger import Ledger
from infra.reporting import Say

CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def open_ledger(path: Path, clock: Clock, say: Say) -> Ledger:
    """The ledger of this file; a file that was cut off or overwritten is kept beside it, and said aloud.

    Raises LedgerError where it cannot be used for another reason, such as a full disk: it may be whole then.
    """
    try:
        ledger = Ledger(path, clock)
        ledger.leases()
    except LedgerError as error:
        if getattr(error.__cause__, "sqlite_errorcode", None) not in CORRUPT:
            raise
        aside = path.with_name(f"{path.name}.broken-{int(clock.now().timestamp())}")
        with suppress(FileNotFoundError):  # somebody beside us was faster
            path.rename(aside)
        say(f"ALARM: {error}; it is kept as {aside.name}, and what it knew is found again by name at the cloud")
        return Ledger(path, clock)
    return ledger
