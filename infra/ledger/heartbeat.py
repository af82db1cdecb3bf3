"""A night's heartbeat: says in the ledger that it is alive, for reapers on other hosts, who cannot see its process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bench.errors import LedgerError
from infra.ledger.ledger import Ledger

EVERY_S = 60.0


@contextmanager
def keep_heartbeat(ledger: Ledger, lease_id: str, every_s: float = EVERY_S) -> Iterator[None]:
    """Keep a lease's heart keep_heartbeat from a thread of its own; a ledger that is busy for once is tried again."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(every_s):
            with suppress(LedgerError):
                ledger.record_heartbeat(lease_id)

    heart = threading.Thread(target=beat, name=f"heart of {lease_id}", daemon=True)
    heart.start()
    try:
        yield
    finally:
        is_over.set()
        heart.join()
