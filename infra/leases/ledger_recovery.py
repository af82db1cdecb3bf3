"""Replace a corrupt ledger by an empty one, since releasing machines needs no record."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from bench.errors import LedgerError
from infra.clock import Clock
from infra.ledger.ledger import Ledger
from infra.reporting import Say

CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def open_ledger(path: Path, clock: Clock, say: Say) -> Ledger:
    """The ledger of this file; a corrupt file is renamed and reported, and an empty ledger takes its place.

    Raises LedgerError where it cannot be used for another reason, such as a full disk: it may be intact then.
    """
    try:
        ledger = Ledger(path, clock)
        ledger.readable_leases()
    except LedgerError as error:
        if getattr(error.__cause__, "sqlite_errorcode", None) not in CORRUPT:
            raise
        aside = path.with_name(f"{path.name}.broken-{int(clock.now().timestamp())}")
        with suppress(FileNotFoundError):  # another process renamed it first
            path.rename(aside)
        say(f"ALARM: {error}; the file is kept as {aside.name}, and its machines are found by name at the cloud")
        return Ledger(path, clock)
    return ledger
