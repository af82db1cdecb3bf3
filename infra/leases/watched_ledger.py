"""The ledger for renting: every lease has a watchdog from its first record on."""

from infra.leases.watchdog import start_watchdog
from infra.ledger.ledger import Intent, Ledger


class WatchedLedger(Ledger):
    """A ledger that starts a lease's watchdog when its intent is on disk, so before its machine is requested."""

    def intend(self, lease_id: str, intent: Intent) -> None:
        """Record that this process is about to request a machine; LeaseError where its watchdog cannot be started."""
        super().intend(lease_id, intent)
        start_watchdog(self.path, lease_id)
