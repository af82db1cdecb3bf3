"""The columns of `leases`, `attempts` (tries to get one), `stages` (parts of one), and `other_costs` of a night."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS, PRICE

LEASE_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "our id of the lease", nullable=False),
    Column("cloud", "text", "cloud provider", nullable=False),
    Column("machine_id", "text", "the cloud's id of the machine", nullable=False),
    *PRICE,
    Column("machine", "text", "name of the machine in its suite; NULL in a suite of one machine"),
    Column("kind", "text", "the cloud's name of the machine type; NULL for leases recorded before this column existed"),
    Column("region", "text", "region of the machine; NULL if the cloud has no regions"),
    Column("is_spot", "flag", "whether the machine was a spot instance, which the cloud can reclaim"),
    Column("attempt_count", "integer", "number of attempts at this lease", low=0),
    Column("rented_at", "moment", "start of billing"),
    Column("released_at", "moment", "end of billing; NULL if not known"),
    Column("usd", "number", "cost of the lease", "USD", low=0),
)

ATTEMPT_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "id of the lease", nullable=False),
    Column("attempt", "integer", "number of the attempt, from 1", nullable=False, low=1),
    Column("started_at", "moment", "start of the attempt", nullable=False),
    Column("cloud", "text", "cloud provider", nullable=False),
    Column("kind", "text", "the cloud's name of the machine type", nullable=False),
    Column("region", "text", "requested region; NULL if the cloud has no regions"),
    Column("is_spot", "flag", "whether a spot instance was requested", nullable=False),
    *PRICE,
    Column("name", "text", "our name of the machine of this attempt", nullable=False),
    Column(
        "outcome",
        "text",
        "rented, no-capacity, over-limit, refused, vanished, stuck or unanswered",
    ),
    Column("reason", "text", "error message of the cloud, or what timed out"),
    Column("machine_id", "text", "the cloud's id of the machine; NULL if none was created"),
)

STAGE_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "id of the lease", nullable=False),
    Column("stage", "text", "boot, software, model, calibrate, serve, measure, ..., release", nullable=False),
    Column("run_id", "text", "run of the stage; NULL for a stage of the whole machine"),
    Column("started_at", "moment", "start of the stage", nullable=False),
    Column("ended_at", "moment", "end of the stage; NULL if not known"),
    Column("duration_s", "number", "duration of the stage", "s", low=0),
    Column(
        "usd",
        "number",
        "its share of the lease's cost; time shared by several stages is split among them",
        "USD",
        low=0,
    ),
)

OTHER_COST_COLUMNS = (
    IDS[0],
    Column("item", "text", "volume, bucket, image or traffic", nullable=False),
    Column(
        "usd",
        "number",
        "a day of it at the catalogue's prices, traffic of the night; 0 for what the suite does not keep, NULL where a "
        "size or a price is unknown",
        "USD",
        low=0,
    ),
)
