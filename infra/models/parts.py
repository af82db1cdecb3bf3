"""A model in a bucket: its files, in pieces of one object each, and the addresses that a machine is lent for them.

A machine never sees a key. It is lent one address a piece, good for a while and for nothing else; such an address is a
secret as well, and shows itself to nobody but the program that uses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, SecretStr

# An object that is put in one go is there whole or not at all, so no half upload is ever left to be billed in silence.
PIECE_BYTES = 512 << 20  # S3 takes 5 GiB in one go; a piece that fails is sent again

SecretUrl = Annotated[SecretStr, PlainSerializer(lambda url: url.get_secret_value(), return_type=str, when_used="json")]


@dataclass(frozen=True)
class CachedFile:
    """One file of a model; its hash was compared with the hub's when the file came from there."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """`size` bytes of a file from `start` on, and the address that gives them or takes them."""

    file: str
    start: int
    size: int
    url: SecretUrl


@dataclass(frozen=True)
class CachedModel:
    """A whole model in a bucket, lent to a machine; the pieces of each file in their order."""

    files: tuple[CachedFile, ...]
    pieces: tuple[Part, ...]


@dataclass(frozen=True)
class FetchResult:
    """Which files of a model a bucket gave, which it has in another form than the hub, and why it gave no more."""

    given: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    why: str | None = None

    @property
    def told(self) -> str:
        """Where the model came from, as its record says it."""
        if not self.given:
            return f"from the hub: {self.why}" if self.why else "from the hub"
        if self.damaged or self.why:
            return f"from the bucket, the rest from the hub: {self.why}"
        return "from the bucket"


@dataclass(frozen=True)
class UploadResult:
    """What was uploaded, and why not the rest; None where all of it was."""

    bytes: int
    why: str | None = None


def cuts(size: int, piece_bytes: int = PIECE_BYTES) -> Iterator[tuple[int, int]]:
    """Where each piece of a file of this size begins, and its size; an empty file has none."""
    for start in range(0, size, piece_bytes):
        yield start, min(piece_bytes, size - start)
