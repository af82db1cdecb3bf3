"""The columns of `command_metrics`: one row per metric of a run of a command."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

COMMAND_COLUMNS = (
    *IDS,
    Column("metric", "text", "name of the metric in the suite", nullable=False),
    Column("unit", "text", "unit of its numbers, as the suite states it", nullable=False),
    Column("value", "number", "the metric: mean, last or highest of its values, as the suite asks"),
    Column("samples", "integer", "how many values it has after the warm-up", low=1),
    Column("mean", "number", "mean of these values"),
    Column("stdev", "number", "their sample standard deviation; NULL for one value", low=0),
    Column("min", "number", "lowest of them"),
    Column("max", "number", "highest of them"),
)
