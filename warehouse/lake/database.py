"""warehouse.duckdb: a small file of views over the lake, replaced atomically, so that readers never wait.

Written in the storage version of DuckDB 1.5, which older clients can read. Its views hold the lake's absolute path; if
the data folder was moved, the next query rebuilds the file.
"""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import duckdb

from bench.errors import UsageError
from nights.durable import make_folder, rename
from nights.journal import complete
from warehouse.lake.bucket.filesystem import bucket_error, connect_to, lake_files
from warehouse.lake.bucket.location import lake_folder, lake_location, views_file
from warehouse.lake.bucket.manifest import ManifestPath
from warehouse.lake.lake import writing
from warehouse.lake.view_file import views_over, write_views
from warehouse.sql import sql
from warehouse.views.tables import LakePath, glob_pattern

DATABASE = "warehouse.duckdb"
_READ_ONCE = ("standing", "measurements", "lease_means")  # of all columns, or what several queries of a page ask
BUILDING = ".warehouse-"  # prefix of the folders in which the file is built
UNFINISHED_S = 3600.0
_OPENING = threading.Lock()  # the connections of one process to one file share its settings
_TOGETHER: ContextVar["_Opened | None"] = ContextVar("_TOGETHER", default=None)
_NOTHING_FROM_ELSEWHERE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}


class _Opened(NamedTuple):
    """The warehouse of a data folder, opened for many queries; with tables of its own, which a cursor would not see."""

    data: Path
    connection: duckdb.DuckDBPyConnection
    is_in_bucket: bool
    has_own_tables: bool = False


def build_warehouse(data: Path) -> Path:
    """Build warehouse.duckdb unless it already holds exactly these views; returns its path.

    Raises ObjectStoreError if a file of the lake cannot be read from its bucket.
    """
    with _translating_bucket_errors():
        _open_built(data).close()
    return views_file(data)


@contextmanager
def _translating_bucket_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        told = bucket_error(error)
        if told is None:
            raise
        raise told from error


def _open_built(data: Path) -> duckdb.DuckDBPyConnection:
    """Open the warehouse over the lake as it is now, with a new file of views if there is none of exactly these."""
    path, lake = views_file(data), lake_files(data)
    digest, statements = views_over(lake)
    current = _open_current(path, lake, digest)
    if current is None:
        _replace(path, lake, statements)
    return current or _open(path, lake)


def _replace(path: Path, lake: LakePath, statements: tuple[str, ...]) -> None:
    with writing(path):
        _delete_unfinished(path.parent)
        # A folder of its own, since several first readers may build the file at the same time.
        with TemporaryDirectory(prefix=BUILDING, dir=path.parent) as folder:
            beside = Path(folder) / DATABASE
            write_views(beside, lake, statements)
            rename(beside, path)


def _delete_unfinished(data: Path) -> None:
    """Delete what processes left that were killed while they built the file, which takes seconds."""
    for left in data.glob(f"{BUILDING}*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > UNFINISHED_S:
                shutil.rmtree(left)


def _open_current(path: Path, lake: LakePath, digest: str) -> duckdb.DuckDBPyConnection | None:
    """Open a warehouse file if it holds the views of this digest; None if it is missing, older or foreign.

    To open it takes longer than most queries, so a query uses the connection that read the digest.
    """
    if not path.exists():
        return None
    with suppress(duckdb.Error):
        connection = _open(path, lake)
        with suppress(duckdb.Error):
            if connection.execute("SELECT sha256 FROM views_digest").fetchone() == (digest,):
                return connection
        connection.close()
    return None


def has_data(data: Path) -> bool:
    """Whether there is a data folder, or a bucket with its lake."""
    return lake_location() is not None or data.is_dir()


def require_data(data: Path) -> None:
    """Raise UsageError where the data folder does not exist; one whose lake is in a bucket is made."""
    if lake_location() is not None:
        make_folder(data.absolute())
    elif not has_data(data):
        raise UsageError(f"no data folder {data}: pass one with --data, or run a night first")


@contextmanager
def open_warehouse(data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the warehouse of this data folder for reading; it is built first if it is missing or was moved.

    A load that was killed while its files came into place is completed first.

    Raises UsageError if the data folder does not exist, ObjectStoreError if a query in this block fails by the bucket.
    """
    together = _TOGETHER.get()
    if together is not None and together.data == data:
        if together.has_own_tables:
            with _translating_bucket_errors():
                yield together.connection
            return
        with _translating_bucket_errors(), together.connection.cursor() as cursor:
            if together.is_in_bucket:
                cursor.execute("USE warehouse")  # as `connect_to` did: a cursor does not inherit it
            yield cursor
        return
    lake = lake_folder(data)
    require_data(data)
    with writing(lake):
        complete(lake)
    with _translating_bucket_errors(), _open_built(data) as connection:
        yield connection


@contextmanager
def opened_once(data: Path) -> Iterator[None]:
    """Open the warehouse once for all queries of this block; else each looks at the lake again, which takes 70 ms."""
    if _has_own_tables(data):
        yield  # a cursor of its connection would not see them
        return
    with open_warehouse(data) as connection:
        before = _TOGETHER.set(_Opened(data, connection, lake_location() is not None))
        try:
            yield
        finally:
            _TOGETHER.reset(before)


@contextmanager
def these_nights_alone(data: Path, nights: Sequence[str]) -> Iterator[None]:
    """In this block `measurements` and what selects from them hold these nights alone, and the widest are read once.

    They have hundreds of columns: to bind them takes a query 60 ms, to read what was found a few. A block within such a
    block keeps the nights of the outer one.
    """
    if _has_own_tables(data):
        yield
        return
    with open_warehouse(data) as connection:
        for view in _READ_ONCE:
            statement = (
                "CREATE TEMP TABLE {{ view | name }} AS FROM {{ view | name }} WHERE night IN ({{ nights | rows }})"
            )
            connection.execute(sql(statement, view=view, nights=[(night,) for night in nights]))
        before = _TOGETHER.set(_Opened(data, connection, lake_location() is not None, has_own_tables=True))
        try:
            yield
        finally:
            _TOGETHER.reset(before)


def _has_own_tables(data: Path) -> bool:
    together = _TOGETHER.get()
    return together is not None and together.data == data and together.has_own_tables


def _open(path: Path, lake: LakePath) -> duckdb.DuckDBPyConnection:
    """Open a warehouse file so that a query can reach the lake beside it and nothing else.

    It cannot write the warehouse, open other files, connect to a network, load extensions, read Python variables or
    change these settings. Files of the lake are protected by `run_sql`, since DuckDB has no folder that is only read.
    """
    with _OPENING:
        if isinstance(lake, ManifestPath):
            connection = connect_to(lake, path, _NOTHING_FROM_ELSEWHERE)
        else:
            connection = duckdb.connect(path, read_only=True, config=_NOTHING_FROM_ELSEWHERE)
        (is_locked,) = connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0]
        if not is_locked:
            folders = [str(lake), glob_pattern(lake)]  # DuckDB checks both forms
            connection.execute("SET GLOBAL TimeZone = 'UTC'")
            connection.execute("SET GLOBAL parquet_metadata_cache = true")
            connection.execute("SET GLOBAL allowed_directories = ?", [folders])
            connection.execute("SET GLOBAL enable_external_access = false")
            connection.execute("SET GLOBAL lock_configuration = true")
    return connection
