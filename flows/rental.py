"""The scope of a rented machine: entered before anything is rented, left only after everything is released."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from bench.errors import LedgerError
from infra.bootstrap import ledger
from infra.clouds.abilities import Volume
from infra.ledger.heartbeat import EVERY_S, keep_heartbeat
from infra.ledger.lease import Lease
from infra.processes.side_by_side import side_by_side
from infra.settings import Settings
from tasks.machine import teardown


@dataclass
class Rental:
    """What the flow knows of its machine; it is released even if the ledger is lost."""

    lease: Lease | None = None
    volume: Volume | None = None


@contextmanager
def release_at_end(
    settings: Settings, night: str, machine: str | None = None, *, heartbeat_s: float = EVERY_S
) -> Iterator[Rental]:
    """Release every lease that this process holds for a night when the block ends, and record heartbeats until then.

    Of a night over several machines it is about the leases of one of them where `machine` names it.

    Enter it before renting. The ledger names what to release, so a signal between the first intent and the return of
    `provision` ends in a teardown too.
    """
    rental = Rental()
    with keep_heartbeat(ledger(settings), night, heartbeat_s):
        try:
            yield rental
        finally:
            _release(_held(settings, night, machine, rental), rental)


def _release(leases: list[Lease], rental: Rental) -> None:
    """Release these leases, several at the same time since each is billed; one that fails prevents no other."""
    volumes = {lease.lease_id: rental.volume if lease is rental.lease else None for lease in leases}
    if len(leases) == 1:
        teardown(leases[0], volumes[leases[0].lease_id])
    elif leases:
        side_by_side({one.lease_id: partial(teardown, one, volumes[one.lease_id]) for one in leases}, len(leases))


def _held(settings: Settings, night: str, machine: str | None, rental: Rental) -> list[Lease]:
    """The open leases of this process, and the one that the flow knows, which a lost ledger lacks."""
    held = [] if rental.lease is None else [rental.lease]
    with suppress(LedgerError):
        known = {lease.lease_id for lease in held}
        held += [lease for lease in ledger(settings).own_leases(night, machine) if lease.lease_id not in known]
    return held
