"""What is billed by time and is ours, by the ledger and by what the clouds store: to compare with an invoice."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from bench.cost.invoice import Used
from bench.cost.lease_cost import bucket_usd_per_month
from bench.errors import LeaseError, ObjectStoreError
from catalog.read import read_catalog
from infra.clouds.abilities import ImageCloud
from infra.clouds.cloud import Cloud
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.ledger.month import KeptCosts
from infra.ledger.volumes import VolumeBook
from infra.models.bucket_cache import dated_models
from infra.models.bucket_lookup import QUICK
from infra.storage.object_store import ObjectStore
from nights.bucket import BucketLocation


def used_of(ledger: Ledger, volumes: VolumeBook, clouds: Mapping[str, Cloud]) -> tuple[list[Used], list[str]]:
    """Every machine, volume and image that a cloud bills, also of clouds that are not set up now, and what is unknown.

    An image that is deleted leaves no record here, so only those that a cloud lists now are known.
    """
    leases = ledger.readable_leases()[0]
    names = dict.fromkeys([*clouds, *(one.cloud for one in leases if one.where.is_rented)])
    of_cloud = {name: [lease for lease in leases if lease.cloud == name] for name in names}
    found, unknown = list[Used](), list[str]()
    for name in names:
        stored, no_volumes = _volumes(volumes, name)
        found += [*_machines(ledger, of_cloud[name]), *stored]
        unknown += no_volumes
    images, no_images = _images_at(clouds)
    return [*found, *images], [*unknown, *no_images]


def models_in_bucket(location: BucketLocation) -> tuple[list[Used], list[str]]:
    """Every model that a bucket stores now, and what is unknown; a model that was deleted leaves no record here."""
    try:
        found = dated_models(ObjectStore(location, QUICK))
    except ObjectStoreError as error:
        return [], [f"the models that {location} stores are unknown: {error}"]
    used = used_by_models(found, location.endpoint)
    return ([], [f"no price known for what {location} stores"]) if used is None else (used, [])


def used_by_models(found: Mapping[str, list[tuple[int, datetime]]], endpoint: str | None) -> list[Used] | None:
    """What each model uses, by its objects' bytes and upload times; None where the bucket's price is unknown."""
    pace, used = read_catalog().pace, list[Used]()
    for model, objects in sorted(found.items()):
        usd = bucket_usd_per_month(sum(size for size, _at in objects), endpoint, pace)
        if usd is None:
            return None
        used.append(Used("bucket", None, model, usd / pace["month_h"], max(at for _size, at in objects), None))
    return used


def _hourly(usd_per_month: str) -> float:
    """A monthly price by the hour: a month of storage is billed as so many hours as the catalogue states."""
    pace = read_catalog().pace
    return pace[usd_per_month] / pace["month_h"]


def kept_costs(
    volumes: VolumeBook | None, clouds: Mapping[str, Cloud], bucket: BucketLocation | None, now: datetime
) -> KeptCosts:
    """What is kept costs in the month that `now` is in, to its end.

    The volumes are those of the ledger, the images and models what clouds and bucket list now; whatever cannot be
    listed, or has no known price, is named.
    """
    stored, no_volumes = ([], []) if volumes is None else _volumes(volumes, None)
    images, no_images = _images_at(clouds)
    models, no_models = ([], []) if bucket is None else models_in_bucket(bucket)
    usd_of = (("volumes", stored), ("images", images), ("models", models))
    uncounted = (*no_volumes, *no_images, *no_models)
    return KeptCosts(tuple((kind, _usd_of_month(used, now)) for kind, used in usd_of), uncounted)


def _usd_of_month(used: Iterable[Used], now: datetime) -> float:
    """What these cost in the month that `now` is in; those that exist count to its end."""
    begins = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    ends = (begins + timedelta(days=31)).replace(day=1)
    each = ((one, min(one.ended_at or ends, ends) - max(one.began_at, begins)) for one in used)
    return sum(one.usd_per_hour * max(0.0, lasted.total_seconds()) / 3600 for one, lasted in each)


def _volumes(volumes: VolumeBook, cloud: str | None) -> tuple[list[Used], list[str]]:
    """The volumes of the ledger, or those of one cloud, and of which one the cost is unknown."""
    periods, unreadable = volumes.periods(cloud)
    usd = _hourly("volume_usd_per_gib_month")
    found = [Used("volume", one.volume_id, one.name, one.size_gib * usd, one.began_at, one.ended_at) for one in periods]
    return found, [f"the cost of volume {one} is unknown: the dates of its record cannot be read" for one in unreadable]


def _images_at(clouds: Mapping[str, Cloud]) -> tuple[list[Used], list[str]]:
    found, unknown = list[Used](), list[str]()
    for cloud in clouds.values():
        try:
            found += _images(cloud)
        except LeaseError as error:
            unknown.append(f"the images that {cloud.name} stores are unknown: {error}")
    return found, unknown


def _images(cloud: Cloud) -> list[Used]:
    stored = cloud.snapshots() if isinstance(cloud, ImageCloud) else []
    usd = _hourly("snapshot_usd_per_gb_month")
    return [
        Used("image", one.snapshot_id, one.name, one.size_gb * usd, one.created_at, None)
        for one in stored
        if one.created_at is not None
    ]


def _machines(ledger: Ledger, leases: Iterable[Lease]) -> Iterator[Used]:
    """Every machine that was rented for these, those of attempts that failed too."""
    for lease in leases:
        for one in ledger.attempts(lease.lease_id):
            if one.machine_id is None or one.rented_at is None:
                continue
            is_last = one.attempt == lease.attempt and lease.rented_at is not None
            usd, end = (lease.usd_per_hour, lease.released_at) if is_last else (one.usd_per_hour, one.ended_at)
            yield Used("machine", one.machine_id, one.name, usd, one.rented_at, end, lease.night)
