"""What a night cost: its machines by their leases, and by the catalogue what is kept between nights."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.cost import kept
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
INSTANCE, TRAFFIC, TOTAL = "instance", "traffic", "total"
MONTHS = {
    kept.VOLUME: "volume with the models, a month",
    kept.BUCKET: "bucket with the models, a month",
    kept.IMAGE: "golden image, a month",
}
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
    total, catalog = sum(usd) if usd and None not in usd else None, read_catalog()
    days = [cost for cost in kept.kept_by_day(suite, catalog).values() if cost is not None]
    day = sum(days) if len(days) == len(MONTHS) else None
    rows = [
        (INSTANCE if not place else f"{INSTANCE} {place + 1}", lease["kind"], lease["minutes"], lease["usd"])
        for place, lease in enumerate(leases)
    ]
    rows += [(MONTHS[item], None, None, cost) for item, cost in kept.kept_by_month(suite, catalog).items()]
    rows.append((TRAFFIC, None, None, kept.traffic_usd(clouds, catalog.pace)))
    rows.append((TOTAL, None, None, total))
    rows.append((KEPT, None, None, day))
    rows.append((TOTAL_KEPT, None, None, None if total is None or day is None else total + day))
    for item, kind, minutes, cost in rows:
        yield {"item": item, "kind": kind, "minutes": minutes, "usd": cost} | beside_row(
            table, item, suite.report.sources, Value(cost)
        )
