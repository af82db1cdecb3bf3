"""Where the lake is: in the data folder, or in the bucket that the settings name."""

import re
from pathlib import Path

from bench.errors import UsageError
from nights.bucket import BucketLocation
from nights.settings import storage_settings

_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]+)(/(?P<prefix>[\w.-]+(/[\w.-]+)*))?/?")


def lake_location() -> BucketLocation | None:
    """The bucket of the setting NIGHTBENCH_LAKE; None for a lake in the data folder. Raises UsageError."""
    settings = storage_settings()
    url = settings.lake
    if not url:
        return None
    found = _URL.fullmatch(url)
    if found is None:
        raise UsageError(
            f"NIGHTBENCH_LAKE={url} is not an S3 URL: write s3://bucket/prefix, or unset it for a lake on disk"
        )
    return BucketLocation(found["bucket"], settings.s3_endpoint or None, found["prefix"] or "lake")


def lake_name(data: Path) -> str:
    """The lake, for a message."""
    return str(lake_location() or data / "lake")


def lake_folder(data: Path) -> Path:
    """Where a loader works: the lake itself, or its copy of the files of a bucket's lake that loading reads."""
    location = lake_location()
    return data.resolve() / ("lake" if location is None else f"lake-{location.short}")


def views_file(data: Path) -> Path:
    """The file of views over the lake."""
    location = lake_location()
    return data.resolve() / ("warehouse.duckdb" if location is None else f"warehouse-{location.short}.duckdb")
