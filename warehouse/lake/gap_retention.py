"""Drop the lists of gaps of old nights: they are most of the lake, and the histograms of each run stay."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.lake.bucket.filesystem import lake_files
from warehouse.lake.lake import STAGING, PartWriter, one_loader, writing
from warehouse.lake.swap import swap_in
from warehouse.schema.columns import PARTITION, arrow_schema
from warehouse.views.tables import PART, LakePath, nights_in

GAPS = ("itl_us", "itl_ms", "itl_tokens")


def drop_old_gaps(data: Path, keep_days: int, loaded: str) -> list[str]:
    """Set the gaps to NULL in nights that began more than `keep_days` days before the newest; returns these nights.

    Looks at the night that was just loaded, and from the newest old night back to one without gaps.
    """
    with writing(data / "lake"), one_loader(data) as lake:
        requests = lake_files(data) / "requests"
        dropped = list(_old_with_gaps(requests, keep_days, loaded))
        for night in dropped:
            _stage(lake / STAGING, requests, night)
        swap_in(lake)
    return dropped


def _old_with_gaps(requests: LakePath, keep_days: int, loaded: str) -> Iterator[str]:
    days = {night: day for night in nights_in(requests) if (day := _day(night))}
    newest = max(days.values(), default=None)
    old = sorted(night for night, day in days.items() if newest and day < newest - timedelta(days=keep_days))
    is_done = False
    for night in reversed(old):
        if not is_done or night == loaded:
            has_gaps = _has_gaps(_file(requests, night))
            if has_gaps:
                yield night
            is_done = is_done or has_gaps is False


def _day(night: str) -> date | None:
    try:
        return date.fromisoformat(night[:10])
    except ValueError:
        return None


def _has_gaps(path: LakePath) -> bool | None:
    """Whether a file of requests has gaps; None if it has no requests."""
    with path.open("rb") as stored, pq.ParquetFile(stored) as file:
        if not file.metadata.num_rows:
            return None
        columns = [name for name in GAPS if name in file.schema_arrow.names]
        return any(
            column.null_count < len(column) for batch in file.iter_batches(columns=columns) for column in batch.columns
        )


def _stage(staging: Path, requests: LakePath, night: str) -> None:
    schema = arrow_schema("requests")
    with (
        _file(requests, night).open("rb") as stored,
        pq.ParquetFile(stored) as file,
        PartWriter(staging, "requests", night) as part,
    ):
        for at in range(file.num_row_groups):
            rows = file.read_row_group(at, columns=[name for name in file.schema_arrow.names if name not in GAPS])
            missing = [field for field in schema if field.name not in rows.schema.names]
            for field in missing:
                rows = rows.append_column(field, pa.nulls(len(rows), field.type))
            part.add(rows.select(schema.names).cast(schema))


def _file(requests: LakePath, night: str) -> LakePath:
    return requests / f"{PARTITION}={night}" / PART
