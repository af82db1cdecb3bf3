"""A night's heartbeat in the ledger, which shows people on other hosts that its process is running."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bench.errors import LedgerError
from infra.ledger.ledger import Ledger

EVERY_S = 60.0


@contextmanager
def keep_heartbeat(ledger: Ledger, night: str, every_s: float = EVERY_S) -> Iterator[None]:
    """Record the heartbeat of whatever this process rents for a night, from a thread during the block.

    It begins before the first lease, because a machine may boot for longer than a heartbeat counts. A failed write is
    repeated with the next one.
    """
    is_over = threading.Event()

    def record() -> None:
        while not is_over.wait(every_s):
            with suppress(LedgerError):
                for lease in ledger.own_leases(night):
                    ledger.record_heartbeat(lease.lease_id)

    thread = threading.Thread(target=record, name=f"heartbeat of {night}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
