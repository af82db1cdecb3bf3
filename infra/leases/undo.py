"""Releases whatever a failed or interrupted request for a machine may have left, with or without its record."""

from collections.abc import Iterable
from contextlib import suppress

from bench.errors import LeaseError, LedgerError
from infra.clock import Clock
from infra.clouds.cloud import Cloud
from infra.leases.release import ReleaseTarget, destroy, release_lease
from infra.ledger.ledger import WITHOUT_MACHINE, Ledger
from infra.reporting import Say

UNDO_PATIENCE_S = 300.0


def undo(cloud: Cloud, ledger: Ledger, clock: Clock, lease_id: str, names: Iterable[str], say: Say) -> None:
    """Release the machines of a lease, or those of these names; the reaper repeats what fails here."""
    try:
        _undo_by_ledger(cloud, ledger, clock, lease_id, say)
    except (KeyError, LedgerError):
        # Without a ledger, or with a new one, the names are still known: each may be a machine.
        with suppress(LeaseError):
            targets = [ReleaseTarget(set(), name) for name in names]
            destroy(cloud, clock, targets, patience_s=UNDO_PATIENCE_S, say=say)
    except LeaseError:
        return  # the lease stays open for the reaper


def _undo_by_ledger(cloud: Cloud, ledger: Ledger, clock: Clock, lease_id: str, say: Say) -> None:
    """Release the lease, or close it where the cloud refused each attempt: then no machine can exist."""
    lease = ledger.lease(lease_id)
    tries = ledger.attempts(lease_id)
    if lease.machine_id is None and all(one.outcome in WITHOUT_MACHINE for one in tries):
        ledger.mark_released(lease_id)
    else:
        release_lease(cloud, ledger, clock, lease_id, patience_s=UNDO_PATIENCE_S, say=say)
