"""Lists leases with their costs, and what clouds and the bucket store for us at a monthly price."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.cost.lease_cost import bucket_usd_per_month, kept_usd_per_month
from bench.errors import LeaseError, ObjectStoreError
from bench.record import StageCost
from catalog.read import read_catalog
from infra.clouds.abilities import ImageCloud
from infra.clouds.cloud import Cloud
from infra.leases.watchdog import is_watched
from infra.ledger.lease import Lease
from infra.ledger.ledger import Attempt, Ledger
from infra.ledger.stage_costs import StageBook
from infra.ledger.volumes import RecordedVolume
from infra.models.bucket_cache import cached_models
from infra.models.bucket_lookup import QUICK
from infra.storage.object_store import ObjectStore
from nights.bucket import BucketLocation


@dataclass(frozen=True)
class LeaseView:
    """One lease, its attempts, the cost of each of its stages, and whether a watchdog waits for its end."""

    lease: Lease
    attempts: tuple[Attempt, ...]
    stages: tuple[StageCost, ...]
    is_watched: bool  # whether its watchdog runs on this computer


@dataclass(frozen=True)
class StoredItem:
    """What is stored for us and billed by the month; None if its price is unknown."""

    description: str
    usd_per_month: float | None


def lease_views(ledger: Ledger, stages: StageBook) -> list[LeaseView]:
    """Every lease that can be read in the ledger, oldest first."""
    data = ledger.path.parent
    return [
        LeaseView(lease, tuple(ledger.attempts(lease.lease_id)), stages.costs(lease), is_watched(data, lease.lease_id))
        for lease in ledger.readable_leases()[0]
    ]


def stored_items(clouds: Mapping[str, Cloud], on_record: Sequence[RecordedVolume] = ()) -> list[StoredItem]:
    """The images and volumes that each cloud stores for us, and the recorded volumes that no cloud lists."""
    seen: set[str] = set()
    found = [item for cloud in clouds.values() for item in _stored_at(cloud, seen)]
    return [*found, *_unlisted([one for one in on_record if one.name not in seen])]


def _unlisted(volumes: Sequence[RecordedVolume]) -> Iterator[StoredItem]:
    for one in volumes:
        usd = kept_usd_per_month(one.size_gib, 0.0, read_catalog().pace)
        known = "recorded" if one.state == "made" else "requested, without a reply,"
        at = f"{one.intended_at:%Y-%m-%d %H:%M} UTC" if one.intended_at else "an unknown time"
        yield StoredItem(f"{one.cloud} volume {one.name}: {known} at {at}, not listed by the cloud now", usd)


def _stored_at(cloud: Cloud, seen: set[str]) -> list[StoredItem]:
    try:
        snapshots = cloud.snapshots() if isinstance(cloud, ImageCloud) else []
        volumes = [one for one in cloud.leftovers() if one.sort == "volume"]
    except LeaseError as error:
        return [StoredItem(f"images and volumes at {cloud.name} are unknown: {error}", None)]
    seen.update(one.name for one in volumes)
    found = []
    if snapshots:
        size_gb = sum(one.size_gb for one in snapshots)
        usd = kept_usd_per_month(0.0, size_gb, read_catalog().pace)
        found.append(StoredItem(f"{cloud.name} stores {len(snapshots)} images, {size_gb:.1f} GB", usd))
    if volumes:
        sizes = [one.size_gib for one in volumes if one.size_gib is not None]
        is_priced = len(sizes) == len(volumes)
        names = ", ".join(one.name for one in volumes)
        usd_volumes = kept_usd_per_month(sum(sizes), 0.0, read_catalog().pace) if is_priced else None
        found.append(StoredItem(f"{cloud.name} stores the volumes {names}", usd_volumes))
    return found


def stored_models(location: BucketLocation) -> list[StoredItem]:
    """The models in a bucket."""
    try:
        found = cached_models(ObjectStore(location, QUICK))
    except ObjectStoreError as error:
        return [StoredItem(f"models in {location} are unknown: {error}", None)]
    pace = read_catalog().pace
    return [
        StoredItem(
            f"{location} stores {model}, {size / 1e9:.1f} GB", bucket_usd_per_month(size, location.endpoint, pace)
        )
        for model, size in sorted(found.items())
    ]
