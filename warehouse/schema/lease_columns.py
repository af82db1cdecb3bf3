"""The columns of `leases`, `attempts` and `stages`: one row a lease, a try at one, and a stage of one."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS, PRICE

LEASE_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "our name for the rental", nullable=False),
    Column("cloud", "text", "who rents it out", nullable=False),
    Column("machine_id", "text", "the cloud's name for the machine", nullable=False),
    *PRICE,
    Column("kind", "text", "the cloud's name for this kind of machine; NULL of leases from before it was kept"),
    Column("region", "text", "where it stood; NULL where the cloud has no regions"),
    Column("is_spot", "flag", "whether it was paid at a spot price, and could be reclaimed"),
    Column("attempt_count", "integer", "tries at renting it", low=0),
    Column("rented_at", "moment", "when paying began"),
    Column("released_at", "moment", "when paying ended; NULL while it is not known to have"),
    Column("usd", "number", "what it cost", "USD", low=0),
)

ATTEMPT_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "the rental that it was for", nullable=False),
    Column("attempt", "integer", "which try, from 1", nullable=False, low=1),
    Column("started_at", "moment", "when it was asked for", nullable=False),
    Column("cloud", "text", "who was asked", nullable=False),
    Column("kind", "text", "the cloud's name for this kind of machine", nullable=False),
    Column("region", "text", "where; NULL where the cloud has no regions"),
    Column("is_spot", "flag", "whether at a spot price", nullable=False),
    *PRICE,
    Column("name", "text", "our name for the machine of this try", nullable=False),
    Column(
        "outcome",
        "text",
        "rented, no-capacity, over-limit, refused, vanished, stuck or unanswered",
    ),
    Column("reason", "text", "in the cloud's words, or what was waited for in vain"),
    Column("machine_id", "text", "the cloud's name for the machine that came of it"),
)

STAGE_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "the rental that it is a part of", nullable=False),
    Column("stage", "text", "boot, software, model, calibrate, serve, measure, ..., release", nullable=False),
    Column("run_id", "text", "the run that it belongs to; NULL of a stage of the whole machine"),
    Column("started_at", "moment", "when it began", nullable=False),
    Column("ended_at", "moment", "when it ended; NULL where it is not known to have"),
    Column("duration_s", "number", "from begin to end", "s", low=0),
    Column(
        "usd", "number", "its part of what the lease cost; time that stages share is split among them", "USD", low=0
    ),
)
