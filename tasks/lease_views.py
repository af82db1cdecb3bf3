"""What was rented, is rented and is kept, with what it costs: from the ledger, and from clouds where they answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.cost.lease_cost import bucket_usd_per_month, kept_usd_per_month
from bench.errors import LeaseError, ObjectStoreError
from bench.record import StageCost
from catalog.read import read_catalog
from infra.bootstrap import ledger, stage_book
from infra.clouds.cloud import Cloud
from infra.ledger.ledger import Attempt, Lease
from infra.ledger.volumes import RecordedVolume
from infra.models.bucket_cache import cached_models
from infra.settings import Settings
from infra.storage.object_store import ObjectStore
from tasks.model_cache import HURRIED
from tasks.salvage import place_of


@dataclass(frozen=True)
class LeaseView:
    """One lease, each try at it, and what each of its stages cost."""

    lease: Lease
    attempts: tuple[Attempt, ...]
    stages: tuple[StageCost, ...]


@dataclass(frozen=True)
class StoredItem:
    """What a cloud stores for us and bills by the month, whether it is used or not; no price where it is not known."""

    what: str
    usd_per_month: float | None


def lease_views(settings: Settings) -> list[LeaseView]:
    """Every lease there ever was, oldest first."""
    book, stages = ledger(settings), stage_book(settings)
    return [LeaseView(lease, tuple(book.attempts(lease.lease_id)), stages.costs(lease)) for lease in book.leases()]


def what_is_kept(clouds: Mapping[str, Cloud], on_record: Sequence[RecordedVolume] = ()) -> list[StoredItem]:
    """The snapshots and volumes that each cloud keeps for us, and the volumes on record that none of them shows."""
    seen: set[str] = set()
    found = [kept for cloud in clouds.values() for kept in _kept_at(cloud, seen)]
    return [*found, *_out_of_sight([one for one in on_record if one.name not in seen])]


def _out_of_sight(volumes: Sequence[RecordedVolume]) -> Iterator[StoredItem]:
    for one in volumes:
        usd = kept_usd_per_month(one.size_gib, 0.0, read_catalog().pace)
        known = "is on record" if one.state == "made" else "was asked for and never answered"
        at = f"{one.intended_at:%Y-%m-%d %H:%M} UTC"
        yield StoredItem(f"{one.cloud} volume {one.name} {known} since {at} and is not seen there now", usd)


def _kept_at(cloud: Cloud, seen: set[str]) -> list[StoredItem]:
    try:
        snapshots = cloud.snapshots()
        volumes = [one for one in cloud.leftovers() if one.sort == "volume"]
    except LeaseError as error:
        return [StoredItem(f"what {cloud.name} keeps is not known: {error}", None)]
    seen.update(one.name for one in volumes)
    found = []
    if snapshots:
        size_gb = sum(one.size_gb for one in snapshots)
        usd = kept_usd_per_month(0.0, size_gb, read_catalog().pace)
        found.append(StoredItem(f"{cloud.name} keeps {len(snapshots)} snapshots of {size_gb:.1f} GB", usd))
    if volumes:
        sizes = [one.size_gib for one in volumes if one.size_gib is not None]
        is_priced = len(sizes) == len(volumes)
        names = ", ".join(one.name for one in volumes)
        usd_volumes = kept_usd_per_month(sum(sizes), 0.0, read_catalog().pace) if is_priced else None
        found.append(StoredItem(f"{cloud.name} keeps the volumes {names}", usd_volumes))
    return found


def models_kept(settings: Settings) -> list[StoredItem]:
    """The models that the bucket keeps, where the settings name one."""
    place = place_of(settings)
    if place is None:
        return []
    try:
        found = cached_models(ObjectStore(place, HURRIED))
    except ObjectStoreError as error:
        return [StoredItem(f"what the bucket keeps is not known: {error}", None)]
    pace = read_catalog().pace
    return [
        StoredItem(f"{place} keeps {model}, {size / 1e9:.1f} GB", bucket_usd_per_month(size, place.endpoint, pace))
        for model, size in sorted(found.items())
    ]
