"""Replace a corrupt ledger by an empty one, since releasing machines needs no record."""

import sqlite3
from pathlib import Path

from bench.errors import LedgerError
from infra.clock import Clock
from infra.ledger.ledger import Ledger
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say

CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def open_ledger(path: Path, clock: Clock, say: Say) -> Ledger:
    """The ledger of this file; a corrupt file is renamed and reported, and an empty ledger takes its place.

    Raises LedgerError where it cannot be used for another reason, such as a full disk: it may be intact then.
    """
    try:
        return _readable(path, clock)
    except LedgerError as error:
        if not _is_corrupt(error):
            raise
    with exclusive_lock(path.with_name(f"{path.name}.lock"), say, f"replacing the corrupt ledger {path}"):
        try:
            return _readable(path, clock)  # another process has replaced it meanwhile
        except LedgerError as error:
            if not _is_corrupt(error):
                raise
            aside = _set_aside(path, clock)
            say(f"ALARM: {error}; the file is kept as {aside.name}, and its machines are found by name at the cloud")
            return Ledger(path, clock)


def _readable(path: Path, clock: Clock) -> Ledger:
    ledger = Ledger(path, clock)
    ledger.readable_leases()
    return ledger


def _is_corrupt(error: LedgerError) -> bool:
    return getattr(error.__cause__, "sqlite_errorcode", None) in CORRUPT


def _set_aside(path: Path, clock: Clock) -> Path:
    aside = path.with_name(f"{path.name}.broken-{int(clock.now().timestamp())}")
    taken = len(list(path.parent.glob(f"{aside.name}*")))
    return path.rename(aside.with_name(f"{aside.name}-{taken}") if taken else aside)
