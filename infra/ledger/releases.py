"""Releases of leases that the ledger lacks, in a table of the ledger's file: it was lost, and an empty one replaced it.

The machines of such a lease were found by their names. Its watchdog reads here that they are gone.
"""

from pathlib import Path

from infra.clock import Clock
from infra.ledger.database import transaction

_SCHEMA = "CREATE TABLE IF NOT EXISTS releases (lease_id TEXT PRIMARY KEY, released_at TEXT NOT NULL)"


def record_release(path: Path, lease_id: str, clock: Clock) -> None:
    """Record that nothing of a lease is left, which the ledger lacks; the first time counts.

    Raises LedgerError where the file cannot be written.
    """
    with transaction(path, f"the release of lease {lease_id} is not recorded") as connection:
        connection.execute(_SCHEMA)
        values = (lease_id, clock.now().isoformat())
        connection.execute("INSERT OR IGNORE INTO releases (lease_id, released_at) VALUES (?, ?)", values)
