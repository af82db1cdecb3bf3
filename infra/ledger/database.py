"""Transactions on the ledger's file, which holds the tables of leases, stages and volumes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import LedgerError


@contextmanager
def transaction(path: Path, refused: str) -> Iterator[sqlite3.Connection]:
    """A transaction that is on disk when the block ends.

    Raises LedgerError where the file cannot be used; `refused` states what is then not done.
    """
    try:
        connection = sqlite3.connect(path, timeout=30)
        connection.row_factory = sqlite3.Row
        connection.text_factory = _decoded
        connection.execute("PRAGMA synchronous = EXTRA")  # syncs the folder too before a write returns
        try:
            with connection:
                yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise unusable(path, error, refused) from error


def _decoded(raw: bytes) -> str:
    """A text of the file; a byte that is not UTF-8 is replaced, since it would keep every other row from being read."""
    return raw.decode(errors="replace")


def unusable(path: Path, error: Exception, refused: str) -> LedgerError:
    """The error of a ledger that cannot be used, with what to do next."""
    return LedgerError(
        f"the ledger {path} cannot be used ({error}); {refused}: free some disk space, make the folder writable, or "
        "choose another folder with --data"
    )
