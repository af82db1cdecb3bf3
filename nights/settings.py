"""The settings of where nights and their lake are, read from the environment here for infra and the warehouse alike."""

import os
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nightbench"


T = TypeVar("T", bound=BaseSettings)


class StorageSettings(BaseSettings):
    """The storage settings of this process, each from NIGHTBENCH_<NAME> or its default."""

    model_config = SettingsConfigDict(env_prefix="NIGHTBENCH_", frozen=True, extra="ignore")

    data: Path = Path("data")
    cache: Path = Field(default_factory=_default_cache)
    lake: str | None = None  # s3://bucket/prefix; None: in the data folder. See warehouse/lake/bucket/location.py
    s3_bucket: str | None = None  # for a copy of run folders; None: no copy. Keys: AWS_ACCESS_KEY_ID and so on
    s3_endpoint: str | None = None  # of Spaces or another store with S3's API; None: Amazon's own
    s3_prefix: str = Field(default="nightbench", pattern=r"^[\w.-]+(/[\w.-]+)*$")  # of all our object names


def storage_settings() -> StorageSettings:
    """The storage settings as the environment has them now, for rooms that are not handed any."""
    return settings_now(StorageSettings)


def settings_now(kind: type[T]) -> T:
    """The settings of this kind as the environment has them now: read again only where it has changed.

    Raises pydantic's ValidationError for a value that is none.
    """
    found: T = _read(kind, frozenset(os.environ.items()))
    return found


@lru_cache(maxsize=8)
def _read(kind: type[T], _environment: AbstractSet[tuple[str, str]]) -> T:
    return kind()
