"""warehouse.duckdb: a small file of views over the lake, replaced atomically, so that readers never wait.

Written in the storage version of DuckDB 1.5, which older clients can read. Its views hold the lake's absolute path; if
the data folder was moved, the next query rebuilds the file.
"""

import hashlib
import os
from pathlib import Path

import duckdb

from bench.errors import UsageError
from warehouse.lake.durable import sync_folder
from warehouse.lake.journal import complete
from warehouse.lake.lake import writing
from warehouse.views import glob_pattern, view_statements

DATABASE = "warehouse.duckdb"
STORAGE_VERSION = "v1.5.0"
_NOTHING_FROM_ELSEWHERE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}


def build_warehouse(data: Path) -> Path:
    """Build warehouse.duckdb unless it already holds exactly these views; returns its path."""
    path = data.absolute() / DATABASE
    statements = tuple(view_statements(data.absolute() / "lake"))
    digest = hashlib.sha256("\n".join(statements).encode()).hexdigest()
    if _digest_of(path) == digest:
        return path
    with writing(path):
        beside = path.with_name(DATABASE + ".tmp")
        beside.unlink(missing_ok=True)
        _build(beside, (*statements, f"CREATE VIEW views_digest AS SELECT '{digest}' AS sha256"))
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    return path


def _build(path: Path, statements: tuple[str, ...]) -> None:
    quoted = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{quoted}' AS built (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE built")
        for statement in statements:
            connection.execute(statement)
        connection.execute("USE memory")
        connection.execute("DETACH built")


def _digest_of(path: Path) -> str | None:
    """The digest of the views in a warehouse file; None if it is missing or foreign."""
    if not path.exists():
        return None
    try:
        with _open(path) as connection:
            found = connection.execute("SELECT sha256 FROM views_digest").fetchone()
    except duckdb.Error:
        return None
    return found[0] if found else None


def open_warehouse(data: Path) -> duckdb.DuckDBPyConnection:
    """Open the warehouse of this data folder for reading; it is built first if it is missing or was moved.

    A load that was killed while its files came into place is completed first.

    Raises UsageError if the data folder does not exist.
    """
    if not data.is_dir():
        raise UsageError(f"no data folder {data}: pass one with --data, or run a night first")
    lake = data.absolute() / "lake"
    with writing(lake):
        complete(lake)
    return _open(build_warehouse(data))


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a warehouse file so that a query can reach the lake beside it and nothing else.

    It cannot write the warehouse, open other files, connect to a network, load extensions, read Python variables or
    change these settings. Files of the lake are protected by `run_sql`, since DuckDB has no folder that is only read.
    """
    connection = duckdb.connect(path, read_only=True, config=_NOTHING_FROM_ELSEWHERE)
    connection.execute("SET TimeZone = 'UTC'")
    lake = path.with_name("lake")
    connection.execute("SET allowed_directories = ?", [[str(lake), glob_pattern(lake)]])  # DuckDB checks both forms
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection
