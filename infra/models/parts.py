"""A model in a bucket: its files, in parts of one object each, and the presigned URL of each part.

A machine never gets the bucket's keys. It gets one presigned URL a part, which expires and allows nothing else; such a
URL is a secret as well, and no repr or log shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, SecretStr

# Each part is put in one request, so it exists whole or not at all: no unfinished multipart upload is billed.
PART_BYTES = 512 << 20  # S3 takes 5 GiB in one request; a part that fails is sent again

SecretUrl = Annotated[SecretStr, PlainSerializer(lambda url: url.get_secret_value(), return_type=str, when_used="json")]


@dataclass(frozen=True)
class CachedFile:
    """One file of a model; its hash was compared with the hub's when the file was downloaded."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """`size` bytes of a file from `start` on, and the URL to download them from or upload them to."""

    file: str
    start: int
    size: int
    url: SecretUrl


@dataclass(frozen=True)
class CachedModel:
    """A whole model in a bucket, with a URL for each part; the parts of each file are in order."""

    files: tuple[CachedFile, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class FetchResult:
    """Which files of a model a bucket gave, which of its files differ from the hub's, and why it gave no more."""

    given: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    why: str | None = None

    @property
    def origin(self) -> str:
        """Where the model came from, as its record states it."""
        if not self.given:
            return f"from the hub: {self.why}" if self.why else "from the hub"
        if self.damaged or self.why:
            return f"from the bucket, the rest from the hub: {self.why}"
        return "from the bucket"


@dataclass(frozen=True)
class UploadResult:
    """How many bytes were uploaded, and why the rest was not; None if all were."""

    bytes: int
    why: str | None = None


def cut(size: int, part_bytes: int = PART_BYTES) -> Iterator[tuple[int, int]]:
    """The start and the size of each part of a file of this size; an empty file has none."""
    for start in range(0, size, part_bytes):
        yield start, min(part_bytes, size - start)
