"""What the nights' folders say of their leases, and giving back what a dead night left."""

import logging
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from bench.record import LeaseAttempt, LeaseReport
from infra.bootstrap import clouds, lease_keys, ledger, ledger_file, stage_book
from infra.clock import WallClock
from infra.leases.ledger_recovery import open_ledger
from infra.leases.reaper import Reaped, reap
from infra.ledger.heartbeat import keep_heartbeat
from infra.ledger.ledger import Attempt, Lease
from infra.processes import detached
from infra.remote.ssh_keys import age_s, forget_keys, leases_with_keys
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store

LOG = logging.getLogger("nightbench")
FORGOTTEN_AFTER_S = 7 * 24 * 3600.0


def alive(lease: Lease) -> AbstractContextManager[None]:
    """Let reapers on other computers see that this lease is in use, for as long as the block lasts."""
    return keep_heartbeat(ledger(Settings()), lease.lease_id)


def report_lease(settings: Settings, lease: Lease) -> None:
    """Write into the night's folder what the ledger knows of a lease: the lake is made from folders alone."""
    # What was never seen to be rented may have cost something all the same.
    was_rented = lease.rented_at is not None or lease.earlier_usd > 0
    report = LeaseReport(
        lease_id=lease.lease_id,
        cloud=lease.cloud,
        machine_id=lease.machine_id or lease.lease_id,
        usd_per_hour=lease.usd_per_hour,
        kind=lease.kind,
        region=lease.region,
        is_spot=lease.is_spot,
        attempts=tuple(map(_attempt, ledger(settings).attempts(lease.lease_id))),
        stages=stage_book(settings).costs(lease),
        rented_at=lease.rented_at,
        released_at=lease.released_at,
        usd=lease.usd(datetime.now(UTC)) if was_rented and lease.released_at else None,
    )
    store.write_json(store.lease_file(settings.data, lease.night, lease.lease_id), report)


def forget_old_keys(settings: Settings) -> None:
    """Remove the keys of every lease that is over, and those that no ledger has known for a week."""
    # Keys are made after their lease is written down, so they are looked for before the leases are.
    folder, now = lease_keys(settings), WallClock().now()
    made = leases_with_keys(folder)
    leases = {lease.lease_id: lease for lease in ledger(settings).leases()}
    # A ledger that was lost may have known a night that lives on and needs its keys.
    unknown = {lease_id for lease_id in made - leases.keys() if age_s(folder, lease_id, now) > FORGOTTEN_AFTER_S}
    forget_keys(
        folder, unknown | {lease_id for lease_id in made & leases.keys() if leases[lease_id].state == "released"}
    )


def report_night(settings: Settings, night: str) -> None:
    """Write what the ledger knows of every lease of a night, those that never became a machine included."""
    for lease in ledger(settings).leases():
        if lease.night == night:
            report_lease(settings, lease)


def _attempt(attempt: Attempt) -> LeaseAttempt:
    return LeaseAttempt(
        started_at=attempt.began_at,
        kind=attempt.kind,
        region=attempt.region,
        is_spot=attempt.is_spot,
        name=attempt.name,
        attempt=attempt.attempt,
        # What nobody saw the end of was never answered, as far as can be known.
        outcome=attempt.outcome or "unanswered",
        reason=attempt.reason or (None if attempt.outcome == "rented" else "its process died before it was known"),
        machine_id=attempt.machine_id,
        usd_per_hour=attempt.usd_per_hour,
    )


def give_back_leftovers(settings: Settings, *, everything: bool = False, say: Say = LOG.error) -> Reaped:
    """Give back every machine that a dead night left, and end what else it left running; say what came of it."""
    book = open_ledger(ledger_file(settings), WallClock(), say)
    left = [lease.lease_id for lease in book.open_leases()]
    reaped = reap(clouds(settings), book, WallClock(), everything=everything, say=say)
    for what, why in reaped.failed.items():
        say(f"ALARM: {what} was not given back: {why}")
    for lease_id in left:
        report_lease(settings, book.lease(lease_id))
    forget_old_keys(settings)
    detached.end(detached.orphans(), patience_s=10.0)
    return reaped
