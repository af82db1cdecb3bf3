"""Writes what the ledger knows of a lease into its night's folder, from which the lake is built."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from bench.errors import LedgerError
from bench.record import LeaseAttempt, LeaseReport, NightRecord
from infra.clock import SystemClock
from infra.ledger.lease import Lease
from infra.ledger.ledger import WITHOUT_MACHINE, Attempt, Ledger
from infra.ledger.stage_costs import StageBook
from infra.reporting import Say
from infra.storage import store


def report_lease(data: Path, ledger_file: Path, lease: Lease, say: Say) -> None:
    """Write the lease file of one lease into its night's folder; a failure is a warning, for the ledger has it all."""
    path = store.lease_file(data, lease.night, lease.lease_id)
    try:
        store.write_json(path, _report(ledger_file, lease))
    except (OSError, LedgerError) as error:
        say(f"{path} was not written ({error}): free some disk space, then run `nightbench reap`, which writes it")


def report_night(data: Path, ledger_file: Path, night: str, say: Say) -> None:
    """Write the lease files of a night, also of leases that never got a machine; a failure is a warning."""
    try:
        leases, _unreadable = Ledger(ledger_file).readable_leases()
    except LedgerError as error:
        say(f"the leases of night {night} were not reported: {error}")
        return
    for lease in (one for one in leases if one.night == night):
        report_lease(data, ledger_file, lease, say)


def lacks_report(data: Path, lease: Lease) -> bool:
    """Whether the lease file of a released lease is missing or does not say so; a deleted night needs none."""
    if lease.released_at is None or not store.night_folder(data, lease.night).is_dir():
        return False
    try:
        written = store.lease_file(data, lease.night, lease.lease_id).read_bytes()
        return LeaseReport.model_validate_json(written).released_at != lease.released_at
    except (OSError, ValueError):
        return True


def _report(ledger_file: Path, lease: Lease) -> LeaseReport:
    attempts = Ledger(ledger_file).attempts(lease.lease_id)
    return LeaseReport(
        lease_id=lease.lease_id,
        cloud=lease.cloud,
        machine_id=lease.machine_id or lease.lease_id,
        usd_per_hour=lease.usd_per_hour,
        machine=lease.machine,
        kind=lease.kind,
        region=lease.region,
        is_spot=lease.is_spot,
        attempts=tuple(map(_attempt, attempts)),
        stages=StageBook(ledger_file).costs(lease),
        rented_at=lease.rented_at,
        released_at=lease.released_at,
        usd=_usd(lease, attempts),
    )


def _usd(lease: Lease, attempts: Sequence[Attempt]) -> float | None:
    """What a released lease cost; None where an attempt may have rented a machine that was never seen."""
    if lease.released_at is None:
        return None
    if lease.rented_at is not None or lease.earlier_usd > 0:
        return lease.usd(SystemClock().now())
    return 0.0 if all(attempt.outcome in WITHOUT_MACHINE for attempt in attempts) else None


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


def night_usd(data: Path, night: str) -> float:
    """What the leases of a night cost, as far as that is known."""
    return sum(lease.usd or 0.0 for lease in _reports(data, night))


def usd_elsewhere(data: Path, night: NightRecord, here: Collection[str], now: datetime) -> float:
    """What the leases of a night's machine have cost until now that are not `here`, by their files from a bucket.

    One that was not released when its file was uploaded counts until now, and at most for the time of its lease.
    """
    machine, longest_s = night.suite.machine, night.suite.machine.lease_minutes * 60.0
    paths = (store.night_folder(data, night.night) / "leases").glob("*.json")
    usd = 0.0
    for path in (one for one in paths if one.stem not in here):
        with suppress(OSError, ValueError):  # the load names a file that cannot be read
            lease = LeaseReport.model_validate_json(path.read_bytes())
            if lease.machine == machine.name and lease.rented_at is not None:
                open_s = min(longest_s, max(0.0, (now - lease.rented_at).total_seconds()))
                usd += open_s / 3600 * lease.usd_per_hour if lease.usd is None else lease.usd
    return usd


def lease_minutes(data: Path, night: str) -> float | None:
    """Minutes of all leases of a night together, none between two; None while one is open, or where none was had."""
    rented = [lease for lease in _reports(data, night) if lease.rented_at is not None]
    held = [one.released_at - one.rented_at for one in rented if one.rented_at and one.released_at]
    return sum(held, timedelta()).total_seconds() / 60 if held and len(held) == len(rented) else None


def _reports(data: Path, night: str) -> list[LeaseReport]:
    paths = sorted((store.night_folder(data, night) / "leases").glob("*.json"))
    return [LeaseReport.model_validate_json(path.read_bytes()) for path in paths]
