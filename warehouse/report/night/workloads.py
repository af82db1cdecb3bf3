"""The numbers that only some runs have, by their workload or their power cap: a row for each run that has one."""

from collections.abc import Sequence

from warehouse.schema.row import Row
from warehouse.schema.workload_columns import WORKLOAD_COLUMNS

_NAMES = ("power_cap_asked_w", *(column.name for column in WORKLOAD_COLUMNS))


def workload_rows(measurements: Sequence[Row]) -> list[Row]:
    """The runs with such a number, and of these numbers those that a run has; empty where none has one."""
    special = [row for row in measurements if any(row[name] is not None for name in _NAMES)]
    known = [name for name in _NAMES if any(row[name] is not None for row in special)]
    return [{name: row[name] for name in ("scenario", "repeat", *known)} for row in special]
