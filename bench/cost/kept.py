"""What a night costs besides its leases: a day of what its suite keeps, and its traffic, at the catalogue's prices."""

from collections.abc import Collection, Mapping

from bench.catalog.catalog import Catalog
from bench.cost.lease_cost import kept_usd_per_month
from bench.cost.replica import model_bytes
from bench.physics import GIB
from bench.suite.suite import Suite
from bench.suite.target import Target

VOLUME, BUCKET, IMAGE, TRAFFIC = "volume", "bucket", "image", "traffic"


def kept_by_month(suite: Suite, catalog: Catalog) -> dict[str, float | None]:
    """USD a month of each thing that can be kept between nights, kept or not; None where no size is known."""
    pace, size = catalog.pace, model_bytes(suite, catalog)
    volume_gib = suite.model.cache_volume_gib or (None if size is None else -(-size // GIB))
    return {
        VOLUME: None if volume_gib is None else kept_usd_per_month(volume_gib, 0.0, pace),
        BUCKET: None if size is None else size / GIB * pace["spaces_usd_per_gib_month"],
        IMAGE: kept_usd_per_month(0.0, pace["snapshot_gb"], pace),
    }


def kept_by_day(suite: Suite, catalog: Catalog) -> dict[str, float | None]:
    """USD a day of each thing that can be kept: 0 for one that the suite does not keep; a golden image always is."""
    model, month_h = suite.model, catalog.pace["month_h"]
    is_kept = {VOLUME: model.cache_volume_gib, BUCKET: model.cache_bucket_minutes is not None, IMAGE: True}
    months = kept_by_month(suite, catalog)
    days = {item: None if usd is None else usd / month_h * 24 for item, usd in months.items()}
    return {item: usd if is_kept[item] else 0.0 for item, usd in days.items()}


def traffic_usd(clouds: Collection[str], pace: Mapping[str, float]) -> float | None:
    """What the traffic of a night on these clouds costs: nothing where each includes far more than run folders."""
    return 0.0 if clouds and all(f"{cloud}_free_traffic_gib" in pace for cloud in clouds) else None


def other_costs(suite: Suite, target: Target, catalog: Catalog) -> dict[str, float | None]:
    """USD of volume, bucket, image and traffic of one night on a target; None where its cloud has no known prices.

    On what is not rented only a bucket is paid for.
    """
    days = kept_by_day(suite, catalog)
    if not target.is_rented:
        return dict.fromkeys((VOLUME, IMAGE, TRAFFIC), 0.0) | {BUCKET: days[BUCKET]}
    traffic = traffic_usd([target.name], catalog.pace)
    # The catalogue's prices of storage are those of the clouds whose traffic it knows.
    own = dict.fromkeys((VOLUME, IMAGE)) if traffic is None else {item: days[item] for item in (VOLUME, IMAGE)}
    return {**own, BUCKET: days[BUCKET], TRAFFIC: traffic}
