"""Compact a lake: copy the nights of every complete month into one file a table."""

from pathlib import Path

from warehouse.lake.database import build_warehouse
from warehouse.lake.lake import one_loader, writing
from warehouse.lake.months import stage_months
from warehouse.lake.swap import swap_in


def compact_months(data: Path) -> tuple[str, ...]:
    """Compact each complete month that is not yet, or has changed, and return the files that changed.

    Queries give the same answers afterwards. Raises LoadIntoWarehouseError where the lake cannot be written.
    """
    with writing(data / "lake"), one_loader(data) as lake:
        stage_months(lake, loose_nights=1)
        changed = swap_in(lake)
        build_warehouse(data)
    return changed
