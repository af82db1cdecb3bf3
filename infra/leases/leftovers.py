"""Releases what killed nights left behind: machines, keys and processes."""

import logging
from collections.abc import Mapping
from pathlib import Path

from bench.errors import LeaseError
from infra.clock import SystemClock
from infra.clouds.cloud import Cloud
from infra.leases.lease_reports import lacks_report, report_lease
from infra.leases.ledger_recovery import open_ledger
from infra.leases.prefixes import for_lease
from infra.leases.reaper import Reaped, reap
from infra.leases.release import release_by_name, release_lease, require_attempt
from infra.ledger.lease import NotSearchedError
from infra.ledger.ledger import Ledger
from infra.ledger.releases import record_release
from infra.processes import detached
from infra.remote.ssh_keys import age_s, forget_keys, keys_folder, leases_with_keys
from infra.reporting import Say

LOG = logging.getLogger("nightbench")
UNKNOWN_KEYS_MAX_S = 7 * 24 * 3600.0


def release_leftovers(
    data: Path,
    ledger_file: Path,
    clouds: Mapping[str, Cloud],
    *,
    everything: bool = False,
    include_own: bool = False,
    say: Say = LOG.error,
) -> Reaped:
    """Release every machine that a killed night left rented, end its processes, and delete its keys.

    `include_own` also releases what this process holds: its night has failed, though the process lives on.
    """
    book = open_ledger(ledger_file, SystemClock(), say)
    open_before = {lease.lease_id for lease in book.readable_leases()[0] if lease.state != "released"}
    for lease in book.own_leases() if include_own else ():
        book.mark_releasing(lease.lease_id)
    reaped = reap(clouds, book, SystemClock(), everything=everything, say=say)
    for machine, why in reaped.failed.items():
        say(f"ALARM: {machine} was not released and may still be billed: {why}")
    for lease in book.readable_leases()[0]:
        if lease.lease_id in open_before or lacks_report(data, lease):
            report_lease(data, ledger_file, lease, say)
    delete_old_keys(data, ledger_file)
    detached.end(detached.orphans(data), patience_s=10.0)
    return reaped


def release_one(
    data: Path,
    ledger_file: Path,
    clouds: Mapping[str, Cloud],
    lease_id: str,
    attempt: int | None = None,
    *,
    say: Say = LOG.error,
) -> list[str]:
    """Release one lease, also while its night is running, and return the ids of its machines; may be repeated.

    Machines of a lease that the ledger lacks are found by their names. Raises LeaseError where something still exists,
    or may exist at a cloud that could not be searched, LeaseInUseError where an attempt is named and a later one has
    begun, whose machine is in use, and NotSearchedError.
    """
    book = open_ledger(ledger_file, SystemClock(), say)
    try:
        lease = book.lease(lease_id)
    except KeyError:
        return _release_unrecorded(ledger_file, clouds, lease_id, say)
    if lease.cloud not in clouds:
        if lease.state == "released":  # as of a host of your own, which is listed only while it is held
            return [lease.machine_id or lease_id]
        raise LeaseError(
            f"no token is set for {lease.cloud!r}, the cloud of lease {lease_id}: set it, or the folder of its scripts "
            "(docs/reference/settings.md)"
        )
    if attempt is not None:
        require_attempt(lease, attempt)
    cloud = for_lease(clouds[lease.cloud], lease)
    released = release_lease(cloud, book, SystemClock(), lease, say=say)
    report_lease(data, ledger_file, released, say)
    delete_old_keys(data, ledger_file)
    detached.end(detached.orphans(data), patience_s=10.0)
    return [released.machine_id or lease_id]


def _release_unrecorded(ledger_file: Path, clouds: Mapping[str, Cloud], lease_id: str, say: Say) -> list[str]:
    """Release what has a lease's name at any cloud, and record that for its watchdog.

    Every cloud has its turn. Where nothing was found and one of them could not be searched, its error is raised, and
    nothing is recorded: the machine may be there. NotSearchedError where none is set up.
    """
    clock, gone, failed = SystemClock(), list[str](), list[Exception]()
    for cloud in clouds.values():
        try:
            gone += release_by_name(cloud, clock, lease_id, say)
        except Exception as error:  # noqa: BLE001 - of whatever kind: a machine at the next cloud is billed meanwhile
            say(f"lease {lease_id} was not searched at {cloud.name}: {error}")
            failed.append(error)
    if failed and not gone:
        raise failed[0]
    if not gone and not any(cloud.is_shared for cloud in clouds.values()):
        raise NotSearchedError(
            f"{ledger_file} has no lease {lease_id}, and no cloud was searched for its machine, because none is set "
            "up: set the token of its cloud, or the folder of its scripts (docs/reference/settings.md)"
        )
    record_release(ledger_file, lease_id, clock)
    return gone


def delete_old_keys(data: Path, ledger_file: Path) -> None:
    """Delete the keys of released leases, and keys older than a week whose lease the ledger lacks."""
    # A lease is in the ledger before its keys are made, so keys are listed before leases.
    folder, now = keys_folder(data), SystemClock().now()
    with_keys = leases_with_keys(folder)
    leases = {lease.lease_id: lease for lease in Ledger(ledger_file).readable_leases()[0]}
    # A lost ledger may have listed a night that still runs and needs its keys.
    unknown = {lease_id for lease_id in with_keys - leases.keys() if age_s(folder, lease_id, now) > UNKNOWN_KEYS_MAX_S}
    released = {lease_id for lease_id in with_keys & leases.keys() if leases[lease_id].state == "released"}
    forget_keys(folder, unknown | released)
