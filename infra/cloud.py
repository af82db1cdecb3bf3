"""The Cloud port, and the lease: a machine is written down before it is rented and until it is seen to be gone."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bench.errors import LeaseError
from infra.ledger import Lease, Ledger


@dataclass(frozen=True)
class Offer:
    """A kind of machine that could be rented now."""

    kind: str
    usd_per_hour: float


class Cloud(Protocol):
    """Rent machines and give them back."""

    name: str

    def offers(self) -> list[Offer]:
        """What can be rented now, cheapest first."""
        ...

    def rent(self, offer: Offer, lease_id: str) -> str:
        """Rent one machine under this lease and return its id; repeating returns the machine of the first time."""
        ...

    def find_ours(self) -> list[str]:
        """The ids of every machine of ours that exists, found without any record of ours."""
        ...

    def release(self, machine_id: str) -> None:
        """Stop paying for a machine and everything on it; releasing one that is gone is not an error."""
        ...


def take_lease(cloud: Cloud, ledger: Ledger, *, night: str, kind: str, minutes: int) -> Lease:
    """Rent the cheapest machine of this kind: intent first, then the call, then what came of it.

    Raises LeaseError where the cloud does not offer the kind; nothing is rented then.
    """
    fitting = [offer for offer in cloud.offers() if offer.kind == kind]
    if not fitting:
        known = ", ".join(sorted({offer.kind for offer in cloud.offers()})) or "nothing"
        raise LeaseError(
            f"{cloud.name} offers no machine of kind {kind!r}, only {known}: change machine.kind or --target"
        )
    lease_id = uuid.uuid4().hex[:12]
    expires_at = datetime.now(UTC) + timedelta(minutes=minutes)
    ledger.intend(lease_id, night=night, cloud=cloud.name, usd_per_hour=fitting[0].usd_per_hour, expires_at=expires_at)
    ledger.hold(lease_id, cloud.rent(fitting[0], lease_id))
    return ledger.lease(lease_id)


def give_back(cloud: Cloud, ledger: Ledger, lease_id: str) -> Lease:
    """Release a lease's machine, look whether it is gone, and only then say so; may be repeated.

    Raises LeaseError where the machine is still there; the lease stays open and `reap` will try again.
    """
    lease = ledger.lease(lease_id)
    machine_id = lease.machine_id or lease_id
    cloud.release(machine_id)
    if machine_id in cloud.find_ours():
        raise LeaseError(
            f"machine {machine_id} of lease {lease_id} is still there after its release; run nightbench reap"
        )
    ledger.release(lease_id)
    return ledger.lease(lease_id)


def reap(clouds: Mapping[str, Cloud], ledger: Ledger, *, everything: bool = False) -> list[str]:
    """Give back every lease whose owner is dead or whose time is over, and every machine of ours nobody has on record.

    Returns the machine ids that were given back. `everything` also ends leases whose owner still lives.
    """
    now = datetime.now(UTC)
    given_back = []
    for lease in ledger.open_leases():
        if everything or lease.is_orphan() or lease.is_overdue(now):
            gone = give_back(clouds[lease.cloud], ledger, lease.lease_id)
            given_back.append(gone.machine_id or gone.lease_id)
    on_record = {lease.machine_id or lease.lease_id for lease in ledger.open_leases()}
    for cloud in clouds.values():
        for machine_id in cloud.find_ours():
            if machine_id not in on_record:
                cloud.release(machine_id)
                given_back.append(machine_id)
    return given_back
