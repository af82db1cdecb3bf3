"""The columns of the views about what nights cost, beside those of their tables."""

from collections.abc import Mapping
from types import MappingProxyType

from warehouse.schema.column import Column

COST_VIEW_COLUMNS: Mapping[str, tuple[Column, ...]] = MappingProxyType(
    {
        "night_costs": (
            Column("leases", "integer", "leases of the night", low=0),
            Column("open_leases", "integer", "leases that were not released", low=0),
            Column("attempts", "integer", "attempts to rent", low=0),
            Column(
                "usd",
                "number",
                "cost of the night's leases; NULL while one is unknown",
                "USD",
                low=0,
            ),
            Column("usd_volume", "number", "a day of the volume that its suite keeps; 0 without one", "USD", low=0),
            Column("usd_bucket", "number", "a day of the models that its suite keeps in a bucket", "USD", low=0),
            Column(
                "usd_image",
                "number",
                "a day of a golden image of the expected size; 0 on hosts of one's own",
                "USD",
                low=0,
            ),
            Column(
                "usd_traffic", "number", "its traffic; 0 where the cloud includes more than a night sends", "USD", low=0
            ),
            Column("usd_total", "number", "leases and all of these; NULL while one is unknown", "USD", low=0),
            Column("usd_measuring", "number", "part of it spent on measuring", "USD", low=0),
            Column("measuring_share", "number", "share of the cost spent on measuring", low=0),
            Column("measurements", "integer", "runs of the night, measured or not", low=0),
            Column("accepted", "integer", "accepted runs", low=0),
            Column("usd_per_accepted", "number", "cost per accepted run", "USD", low=0),
        ),
        "lease_days": (
            Column("machine_id", "text", "the cloud's id of the machine"),
            Column("cloud", "text", "cloud provider"),
            Column("kind", "text", "the cloud's name of the machine type"),
            Column("day", "text", "day in UTC"),
            Column("minutes", "number", "minutes of the day in which the machine was billed", "min", low=0),
            Column("usd", "number", "their cost", "USD", low=0),
        ),
        "stage_costs": (
            Column("stage", "text", "stage of the lease"),
            Column("times", "integer", "how often the stage ran", low=1),
            Column("minutes", "number", "time of the stage", "min", low=0),
            Column("usd", "number", "cost of the stage", "USD", low=0),
            Column("began_at", "moment", "when it first began"),
        ),
    }
)
