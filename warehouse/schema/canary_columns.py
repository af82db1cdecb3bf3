"""The columns of `canary`: one row per test of a canary."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

CANARY_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "id of the lease", nullable=False),
    Column("position", "text", "before the first server of the lease, or after its last", nullable=False),
    Column("started_at", "moment", "start of the canary", nullable=False),
    Column("duration_s", "number", "duration of the canary", "s", low=0),
    Column("torch_version", "text", "version of torch in the engine's environment; NULL if it was not imported"),
    Column("test", "text", "what was measured; NULL in the row of a canary that did not run to its end"),
    Column("device", "integer", "index of the GPU; NULL for the CPU, the disk, and a test of all GPUs", low=0),
    Column("peer", "integer", "index of the GPU that a link leads to", low=0),
    Column("gpu", "text", "name of the GPU as torch has it"),
    Column("value", "number", "what was reached, in `unit`; NULL with a `reason`", low=0),
    Column("unit", "text", "GB/s or TFLOP/s"),
    Column("peak", "number", "peak of this GPU in the catalogue, in `unit`; NULL if it has none", low=0),
    Column("share_of_peak", "number", "value over peak", "share", low=0),
    Column("floor", "number", "floor of this GPU in catalog/canary_floors.csv, in `unit`; NULL if it has none", low=0),
    Column("is_floor_verified", "flag", "whether the floor was measured on healthy machines"),
    Column("over_floor", "number", "value over floor; below 1 the machine is unfit", low=0),
    Column("reason", "text", "why the test has no value, or why the canary did not run to its end"),
    Column("unfit", "text", "why the machine was not used"),
)
