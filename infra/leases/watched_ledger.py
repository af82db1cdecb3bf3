"""The ledger for renting: every lease has a watchdog from its first record on."""

from bench.errors import LeaseError
from infra.leases.watchdog import start_watchdog
from infra.ledger.ledger import Intent, Ledger


class WatchedLedger(Ledger):
    """A ledger that starts a lease's watchdog when its intent is on disk, so before its machine is requested."""

    def intend(self, lease_id: str, intent: Intent) -> None:
        """Record that this process is about to request a machine, and return once its watchdog is ready.

        Raises LeaseError where its watchdog does not start; the attempt has ended then, since nothing was requested.
        """
        super().intend(lease_id, intent)
        try:
            start_watchdog(self.path, lease_id)
        except LeaseError as error:
            self.end_attempt(lease_id, "refused", str(error))
            raise
