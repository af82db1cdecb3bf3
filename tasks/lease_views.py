"""What was rented, is rented and is kept, with what it costs: from the ledger, and from clouds where they answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.errors import LeaseError
from bench.money import kept_usd_per_month
from bench.record import StageCost
from catalog.read import read_catalog
from infra.cloud import Cloud
from infra.ledger import Attempt, Lease
from infra.settings import Settings
from tasks.places import ledger, stage_book


@dataclass(frozen=True)
class LeaseView:
    """One lease, each try at it, and what each of its stages cost."""

    lease: Lease
    attempts: tuple[Attempt, ...]
    stages: tuple[StageCost, ...]


@dataclass(frozen=True)
class Kept:
    """What a cloud stores for us and bills by the month, whether it is used or not; no price where it is not known."""

    what: str
    usd_per_month: float | None


def lease_views(settings: Settings) -> list[LeaseView]:
    """Every lease there ever was, oldest first."""
    book, stages = ledger(settings), stage_book(settings)
    return [LeaseView(lease, tuple(book.attempts(lease.lease_id)), stages.costs(lease)) for lease in book.leases()]


def what_is_kept(clouds: Mapping[str, Cloud]) -> list[Kept]:
    """The snapshots and volumes that each cloud keeps for us."""
    return [kept for cloud in clouds.values() for kept in _kept_at(cloud)]


def _kept_at(cloud: Cloud) -> list[Kept]:
    try:
        snapshots = cloud.snapshots()
        volumes = [one for one in cloud.leftovers() if one.sort == "volume"]
    except LeaseError as error:
        return [Kept(f"what {cloud.name} keeps is not known: {error}", None)]
    found = []
    if snapshots:
        size_gb = sum(one.size_gb for one in snapshots)
        usd = kept_usd_per_month(0.0, size_gb, read_catalog().pace)
        found.append(Kept(f"{cloud.name} keeps {len(snapshots)} snapshots of {size_gb:.1f} GB", usd))
    if volumes:
        sizes = [one.size_gib for one in volumes if one.size_gib is not None]
        is_priced = len(sizes) == len(volumes)
        names = ", ".join(one.name for one in volumes)
        usd_volumes = kept_usd_per_month(sum(sizes), 0.0, read_catalog().pace) if is_priced else None
        found.append(Kept(f"{cloud.name} keeps the volumes {names}", usd_volumes))
    return found
