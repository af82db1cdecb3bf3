"""Writes what the ledger knows of a lease into its night's folder, from which the lake is built."""

from datetime import UTC, datetime
from pathlib import Path

from bench.record import LeaseAttempt, LeaseReport
from infra.ledger.ledger import Attempt, Lease, Ledger
from infra.ledger.stage_costs import StageBook
from infra.storage import store


def report_lease(data: Path, ledger_file: Path, lease: Lease) -> None:
    """Write the lease file of one lease into its night's folder."""
    # A machine that was never seen as rented may still have cost something.
    was_rented = lease.rented_at is not None or lease.earlier_usd > 0
    report = LeaseReport(
        lease_id=lease.lease_id,
        cloud=lease.cloud,
        machine_id=lease.machine_id or lease.lease_id,
        usd_per_hour=lease.usd_per_hour,
        kind=lease.kind,
        region=lease.region,
        is_spot=lease.is_spot,
        attempts=tuple(map(_attempt, Ledger(ledger_file).attempts(lease.lease_id))),
        stages=StageBook(ledger_file).costs(lease),
        rented_at=lease.rented_at,
        released_at=lease.released_at,
        usd=lease.usd(datetime.now(UTC)) if was_rented and lease.released_at else None,
    )
    store.write_json(store.lease_file(data, lease.night, lease.lease_id), report)


def report_night(data: Path, ledger_file: Path, night: str) -> None:
    """Write the lease files of a night, also of leases that never got a machine."""
    for lease in Ledger(ledger_file).leases():
        if lease.night == night:
            report_lease(data, ledger_file, lease)


def _attempt(attempt: Attempt) -> LeaseAttempt:
    return LeaseAttempt(
        started_at=attempt.began_at,
        kind=attempt.kind,
        region=attempt.region,
        is_spot=attempt.is_spot,
        name=attempt.name,
        attempt=attempt.attempt,
        # An attempt without an outcome was never answered, as far as is known.
        outcome=attempt.outcome or "unanswered",
        reason=attempt.reason or (None if attempt.outcome == "rented" else "its process exited before the outcome"),
        machine_id=attempt.machine_id,
        usd_per_hour=attempt.usd_per_hour,
    )
