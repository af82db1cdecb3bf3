"""Where the lake is: in the data folder, or in the bucket that the settings name."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UsageError

_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]+)(/(?P<prefix>[\w.-]+(/[\w.-]+)*))?/?")


@dataclass(frozen=True)
class LakeLocation:
    """A bucket, the prefix of the lake's objects in it, and its endpoint; keys come from the usual AWS environment."""

    bucket: str
    prefix: str
    endpoint: str | None = None  # None: Amazon's own

    def __str__(self) -> str:
        """The usual notation of a bucket."""
        return f"s3://{self.bucket}/{self.prefix}" + (f" at {self.endpoint}" if self.endpoint else "")

    @property
    def short(self) -> str:
        """A short hash that separates the local files of this lake from those of others."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:8]


def lake_location() -> LakeLocation | None:
    """The bucket of the setting NIGHTBENCH_LAKE; None for a lake in the data folder. Raises UsageError."""
    url = os.environ.get("NIGHTBENCH_LAKE")
    if not url:
        return None
    found = _URL.fullmatch(url)
    if found is None:
        raise UsageError(
            f"NIGHTBENCH_LAKE={url} is not an S3 URL: write s3://bucket/prefix, or unset it for a lake on disk"
        )
    return LakeLocation(found["bucket"], found["prefix"] or "lake", os.environ.get("NIGHTBENCH_S3_ENDPOINT") or None)


def lake_name(data: Path) -> str:
    """The lake, for a message."""
    return str(lake_location() or data / "lake")


def lake_folder(data: Path) -> Path:
    """Where a loader works: the lake itself, or its copy of the files of a bucket's lake that loading reads."""
    location = lake_location()
    return data.absolute() / ("lake" if location is None else f"lake-{location.short}")


def views_file(data: Path) -> Path:
    """The file of views over the lake."""
    location = lake_location()
    return data.absolute() / ("warehouse.duckdb" if location is None else f"warehouse-{location.short}.duckdb")
