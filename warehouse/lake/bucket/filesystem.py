"""The files of a manifest as DuckDB reads them: by the names that they have in a lake on disk."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from fsspec import AbstractFileSystem

from bench.errors import MissingObjectError, ObjectStoreError
from nights.bucket import BucketLocation
from warehouse.lake.bucket.client import lake_bucket
from warehouse.lake.bucket.location import lake_location
from warehouse.lake.bucket.manifest import PROTOCOL, ROOT, ManifestPath, Tree
from warehouse.views.tables import LakePath


class ManifestFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A file system that only reads, in one state of the lake."""

    protocol = PROTOCOL
    cachable = False  # one instance for each manifest

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree

    def glob(self, path: str, **_options: Any) -> list[str]:
        """The addresses of the files that match a pattern."""
        return [f"{ROOT}/{name}" for name in self._tree.matches(_name(path))]

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """The size of a file in bytes. Raises FileNotFoundError."""
        file = self._tree.files.get(_name(path))
        if file is None:
            raise FileNotFoundError(path)
        return {"name": path, "type": "file", "size": file.size}

    def exists(self, path: str, **_options: Any) -> bool:
        """Whether it is a file of the manifest."""
        return _name(path) in self._tree.files

    def modified(self, _path: str) -> datetime:
        """A fixed time: a file does not change within one manifest."""
        return datetime.fromtimestamp(0, UTC)

    def open(self, path: str, mode: str = "rb", **_options: Any) -> Any:
        """Open a file for reading."""
        if mode != "rb":
            raise PermissionError(f"{path}: the lake is only read here")
        file = self._tree.files.get(_name(path))
        if file is None:
            raise FileNotFoundError(path)
        return self._tree.open(file)


def _name(path: str) -> str:
    return path.removeprefix(f"{ROOT}/")


def bucket_error(error: duckdb.Error) -> ObjectStoreError | None:
    """The bucket's error, if a query failed by it: DuckDB keeps only the text of a Python error."""
    for kind in (MissingObjectError, ObjectStoreError):
        if found := re.search(rf"\b{kind.__name__}: ([^\n]+)", str(error)):
            return kind(found[1])
    return None


def lake_files(data: Path) -> LakePath:
    """The files of the lake as they are now, on disk or in the bucket. Raises ObjectStoreError."""
    location = lake_location()
    return data.resolve() / "lake" if location is None else read_lake(location)


def read_lake(location: BucketLocation) -> ManifestPath:
    """The files of a bucket's lake as they are now. Raises ObjectStoreError."""
    bucket = lake_bucket(location)
    return ManifestPath(Tree(bucket.read_manifest(), bucket.open))


def let_read(connection: duckdb.DuckDBPyConnection, lake: LakePath) -> None:
    """Let a connection read the files of a lake in a bucket; it reads those on disk anyway."""
    if isinstance(lake, ManifestPath):
        connection.register_filesystem(ManifestFileSystem(lake.tree))


def connect_to(lake: ManifestPath, views: Path, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """Connect to this file of views over one version of a lake.

    The connections of a process to one version share one DuckDB, as those to one file do. A later version gets another,
    so that nothing changes below a query.
    """
    connection = duckdb.connect(f":memory:{views}@{lake.tree.version.etag}", config=config)
    try:
        if PROTOCOL not in connection.list_filesystems():
            let_read(connection, lake)
            connection.execute("ATTACH ? AS warehouse (READ_ONLY)", [str(views)])
        connection.execute("USE warehouse")
    except duckdb.Error:
        connection.close()
        raise
    return connection
