"""What a night cost: its machines by their leases, and by the catalogue what is kept between nights."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bench.cost.lease_cost import kept_usd_per_month
from bench.cost.replica import model_bytes
from bench.physics import GIB
from bench.suite.report import ReportTable
from bench.suite.scenario import Scenario
from bench.suite.suite import Suite
from catalog.read import read_catalog
from warehouse.lake.query import ask
from warehouse.suite_report.measured import NightValues, Value
from warehouse.suite_report.published import beside_row

_LEASES = """
SELECT machine, cloud, kind, usd_per_hour, usd, date_diff('second', rented_at, released_at) / 60 AS minutes
FROM leases WHERE night = ? ORDER BY rented_at
"""
INSTANCE, VOLUME, IMAGE, TOTAL = "instance", "volume with the models, a month", "golden image, a month", "total"
BUCKET, TRAFFIC = "bucket with the models, a month", "traffic"
KEPT, TOTAL_KEPT = "a day of the volume, bucket and image that the suite keeps", "total with a day of what is kept"


def night_cost_rows(
    suite: Suite, table: ReportTable, _scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each lease, for what is kept by the month, for traffic and for the night; None for an unknown price.

    A row's name for `figures` is `instance`, of the first lease, or the item's own. A night pays a day of what its
    suite keeps: the volume or bucket that `[model]` names, and a golden image; `nightbench leases` lists it.
    """
    leases = ask(values.data, _LEASES, (values.night,)).dicts()
    usd, clouds = [lease["usd"] for lease in leases], {lease["cloud"] for lease in leases}
    total, kept = sum(usd) if usd and None not in usd else None, _kept(suite)
    day = _a_day(suite, kept)
    rows = [
        (INSTANCE if not place else f"{INSTANCE} {place + 1}", lease["kind"], lease["minutes"], lease["usd"])
        for place, lease in enumerate(leases)
    ]
    rows += [(item, None, None, cost) for item, cost in kept.items()]
    rows.append((TRAFFIC, None, None, _traffic(clouds)))
    rows.append((TOTAL, None, None, total))
    rows.append((KEPT, None, None, day))
    rows.append((TOTAL_KEPT, None, None, None if total is None or day is None else total + day))
    for item, kind, minutes, cost in rows:
        yield {"item": item, "kind": kind, "minutes": minutes, "usd": cost} | beside_row(
            table, item, suite.report.sources, Value(cost)
        )


def _kept(suite: Suite) -> dict[str, float | None]:
    """What a month costs of each thing that can be kept between nights, at the catalogue's prices."""
    pace, size = read_catalog().pace, model_bytes(suite, read_catalog())
    volume_gib = suite.model.cache_volume_gib or (None if size is None else -(-size // GIB))
    return {
        VOLUME: None if volume_gib is None else kept_usd_per_month(volume_gib, 0.0, pace),
        BUCKET: None if size is None else size / GIB * pace["spaces_usd_per_gib_month"],
        IMAGE: kept_usd_per_month(0.0, pace["snapshot_gb"], pace),
    }


def _traffic(clouds: Collection[str]) -> float | None:
    """What the traffic of a night on these clouds costs: nothing where each includes far more than run folders."""
    pace = read_catalog().pace
    return 0.0 if clouds and all(f"{cloud}_free_traffic_gib" in pace for cloud in clouds) else None


def _a_day(suite: Suite, kept: Mapping[str, float | None]) -> float | None:
    """What a day costs of what this suite keeps; None where one of its prices is unknown."""
    model = suite.model
    is_kept = {VOLUME: model.cache_volume_gib, BUCKET: model.cache_bucket_minutes, IMAGE: True}
    months = [cost for item, cost in kept.items() if is_kept[item]]
    known = [cost for cost in months if cost is not None]
    return sum(known) / read_catalog().pace["month_h"] * 24 if len(known) == len(months) else None
