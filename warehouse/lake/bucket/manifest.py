"""What a lake in a bucket holds: the objects of its files, by the names that these have in a lake on disk."""

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Literal, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from warehouse.schema.columns import PARTITION
from warehouse.views.tables import BY_COLUMNS

Open = Callable[["StoredFile"], IO[bytes]]
PROTOCOL = "nightlake"
ROOT = f"{PROTOCOL}://lake"
KEY_DIGITS = 32  # of a SHA-256, in the names of objects
KEY_WORD = 12  # hexadecimal digits


class StoredFile(BaseModel):
    """One file of the lake: its object's key below the lake's prefix, its SHA-256 and its size in bytes.

    `columns` is equal for Parquet files with the same columns, and None for other files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    sha256: str
    size: int
    columns: str | None = None


class Manifest(BaseModel):
    """Every file of the lake by name, and the objects that were replaced, with the time of that, in seconds of epoch.

    A reader takes one manifest and sees that state for as long as it reads: objects are never changed, and replaced
    ones stay for a day.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: Mapping[str, StoredFile] = {}
    replaced: Mapping[str, float] = {}


@dataclass(frozen=True)
class Version:
    """A manifest as read; `etag` is the bucket's name of this version, None if there is no manifest yet."""

    manifest: Manifest = field(default_factory=Manifest)
    etag: str | None = None


def new_key(name: str, sha256: str) -> str:
    """A key that no other object has: the file's folder, the hash of its content, and a word drawn by chance.

    Without that word, a load might upload a content while another load deletes an old object of the same content.
    """
    path = PurePosixPath(name)
    return str(path.with_name(f"{sha256[:KEY_DIGITS]}-{uuid4().hex[:KEY_WORD]}{path.suffix}"))


class ManifestPath:
    """A file or folder of a manifest; a `LakePath`, as a path on disk is one."""

    def __init__(self, tree: "Tree", inner: str = "") -> None:
        self.tree, self._inner = tree, inner

    def __str__(self) -> str:
        """Its address for DuckDB."""
        return f"{ROOT}/{self._inner}" if self._inner else ROOT

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self._inner.rpartition("/")[2]

    def __truediv__(self, child: str) -> Self:
        """A file or folder in this folder, whether or not it exists."""
        return type(self)(self.tree, f"{self._inner}/{child}" if self._inner else child)

    def iterdir(self) -> Iterator[Self]:
        """What is directly in this folder."""
        return (self / child for child in self.tree.folders.get(self._inner, ()))

    def is_dir(self) -> bool:
        """Whether some file is below this name."""
        return self._inner in self.tree.folders

    def is_file(self) -> bool:
        """Whether it is a file of the manifest."""
        return self._inner in self.tree.files

    def open(self, _mode: Literal["rb"]) -> IO[bytes]:
        """Open the object of this file for reading. Raises FileNotFoundError."""
        file = self.tree.files.get(self._inner)
        if file is None:
            raise FileNotFoundError(f"{self} is not in the lake")
        return self.tree.open(file)

    def read_bytes(self) -> bytes:
        """The content of this file."""
        with self.open("rb") as file:
            return file.read()


class Tree:
    """The folders of one version of a lake, and how to open its objects."""

    def __init__(self, version: Version, open_file: Open) -> None:
        self.version, self.open = version, open_file
        self.files = {**version.manifest.files, **_by_columns(version.manifest)}
        self.folders: dict[str, set[str]] = {"": set()}
        for name in self.files:
            while name:
                folder, _slash, child = name.rpartition("/")
                known = self.folders.setdefault(folder, set())
                name = "" if child in known else folder  # noqa: PLW2901 - goes up until a folder is known
                known.add(child)

    def matches(self, pattern: str) -> list[str]:
        """The names of the files that match a pattern; a star matches within one folder."""
        found = [""]
        for part in pattern.split("/"):
            found = [
                f"{name}/{child}".lstrip("/")
                for name in found
                for child in fnmatch.filter(self.folders.get(name, ()), part)
            ]
        return sorted(name for name in found if name in self.files)


def _by_columns(manifest: Manifest) -> dict[str, StoredFile]:
    """The files of nights again, by the folders of their columns."""
    return {
        f"{BY_COLUMNS}{file.columns}/{name}": file
        for name, file in manifest.files.items()
        if file.columns and f"/{PARTITION}=" in name
    }
