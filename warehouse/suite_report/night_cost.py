"""What a night cost: its machines by their leases, and by the catalogue what is kept between nights."""

from collections.abc import Iterator, Sequence
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
SELECT machine, kind, usd_per_hour, usd, date_diff('second', rented_at, released_at) / 60 AS minutes
FROM leases WHERE night = ? ORDER BY rented_at
"""
INSTANCE, VOLUME, IMAGE, TOTAL = "instance", "volume with the models, a month", "golden image, a month", "total"


def night_cost_rows(
    suite: Suite, table: ReportTable, _scenarios: Sequence[Scenario], values: NightValues
) -> Iterator[dict[str, Any]]:
    """One row for each lease, for what is kept by the month, and for the night; None for an unknown price.

    A row's name for `figures` is `instance`, of the first lease, or the item's own. Nights that keep neither a volume
    nor an image do not pay for them; `nightbench leases` lists what is stored.
    """
    leases = ask(values.data, _LEASES, (values.night,)).dicts()
    usd = [lease["usd"] for lease in leases]
    pace, size = read_catalog().pace, model_bytes(suite, read_catalog())
    volume = None if size is None else kept_usd_per_month(-(-size // GIB), 0.0, pace)
    rows = [
        (INSTANCE if not place else f"{INSTANCE} {place + 1}", lease["kind"], lease["minutes"], lease["usd"])
        for place, lease in enumerate(leases)
    ]
    rows.append((VOLUME, None, None, volume))
    rows.append((IMAGE, None, None, kept_usd_per_month(0.0, pace["snapshot_gb"], pace)))
    rows.append((TOTAL, None, None, sum(usd) if usd and None not in usd else None))
    for item, kind, minutes, cost in rows:
        yield {"item": item, "kind": kind, "minutes": minutes, "usd": cost} | beside_row(
            table, item, suite.report.sources, Value(cost)
        )
