"""What the nights' folders say of their leases, and giving back what a dead night left."""

from datetime import UTC, datetime

from bench.record import LeaseReport
from infra import processes, store
from infra.clock import WallClock
from infra.ledger import Lease
from infra.reaper import Reaped, reap
from infra.release import Say, silent
from infra.settings import Settings
from tasks.places import clouds, ledger


def report_lease(settings: Settings, lease: Lease) -> None:
    """Write into the night's folder what the ledger knows of a lease: the lake is made from folders alone."""
    # What was never seen to be rented may have cost something all the same.
    is_known = lease.released_at is not None and lease.rented_at is not None
    report = LeaseReport(
        lease_id=lease.lease_id,
        cloud=lease.cloud,
        machine_id=lease.machine_id or lease.lease_id,
        usd_per_hour=lease.usd_per_hour,
        rented_at=lease.rented_at,
        released_at=lease.released_at,
        usd=lease.usd(datetime.now(UTC)) if is_known else None,
    )
    store.write_json(store.lease_file(settings.data, lease.night, lease.lease_id), report)


def give_back_leftovers(settings: Settings, *, everything: bool = False, say: Say = silent) -> Reaped:
    """Give back every machine that a dead night left, and end what else it left running; say what came of it."""
    book = ledger(settings)
    left = [lease.lease_id for lease in book.open_leases()]
    reaped = reap(clouds(settings), book, WallClock(), everything=everything, say=say)
    for lease_id in left:
        report_lease(settings, book.lease(lease_id))
    processes.end(processes.orphans(), patience_s=10.0)
    return reaped
