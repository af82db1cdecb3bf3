"""The file of views: a copy of the views over an empty lake, in which the rows of tables that have some are replaced.

DuckDB takes two seconds to bind each view and to comment on each column. So the views over an empty lake are kept in
the cache folder, under the digest of their SQL. The view of a table selects from a macro, which holds the paths of its
files: a macro can be replaced without its view, which would lose its comments. Where that file cannot be used, the
views are built one by one.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from nights.durable import move_into_place, sync
from nights.settings import storage_settings
from warehouse.lake.bucket.filesystem import let_read
from warehouse.schema.columns import TABLES
from warehouse.sql import sql
from warehouse.views import view_statements
from warehouse.views.comments import comment_statements, comments
from warehouse.views.tables import LakePath

STORAGE_VERSION = "v1.5.0"
OUTDATED_S = 30 * 86400.0
NO_LAKE = Path("/nonexistent")
_VIEW, _MACRO = "CREATE VIEW {} AS ", "CREATE MACRO {}_rows() AS TABLE "
_CREATE = re.compile(r"CREATE (?=VIEW|MACRO)")
_COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE database_name = 'built' AND NOT internal
"""


def kept_file(digest: str) -> Path:
    """Where the views over an empty lake of this digest are kept: below the folder of the setting NIGHTBENCH_CACHE."""
    return storage_settings().cache / "views" / f"{digest[:16]}-{duckdb.__version__}.duckdb"


def views_over(lake: LakePath) -> tuple[str, tuple[str, ...]]:
    """The statements that make the views over this lake, after the digest that the last of these views holds."""
    statements = tuple(view_statements(lake))
    views = (*_over_macros(statements), *statements[len(TABLES) :])
    digest = hashlib.sha256("\n".join((*views, comments())).encode()).hexdigest()
    return digest, (*views, sql("CREATE VIEW views_digest AS SELECT {{ digest }} AS sha256", digest=digest))


def _over_macros(statements: tuple[str, ...]) -> Iterator[str]:
    """The statements of the tables' views, each as a macro of its rows and a view that selects from it."""
    for table, statement in zip(TABLES, statements, strict=False):
        view, macro = _VIEW.format(table), _MACRO.format(table)
        yield statement.replace(view, macro, 1)
        yield view + sql("FROM {{ macro | name }}()", macro=f"{table}_rows")


def write_views(path: Path, lake: LakePath, statements: tuple[str, ...]) -> None:
    """Write a new file of these views, and flush it to disk."""
    if not _copied(path, lake, statements):
        for left in path.parent.glob(f"{path.name}*"):  # its write-ahead log too
            left.unlink()
        _build(path, lake, statements)
    sync(path)


def _copied(path: Path, lake: LakePath, statements: tuple[str, ...]) -> bool:
    """Whether the views over an empty lake could be copied and adapted."""
    with suppress(OSError, RuntimeError):  # no cache folder can be written, no home is known
        digest, empty = views_over(NO_LAKE)
        kept = kept_file(digest)
        if not kept.exists():
            _keep(kept, empty)
        shutil.copyfile(kept, path)
        changed = [sql for sql, before in zip(statements, empty, strict=True) if sql != before]
        try:
            return _adapted(path, lake, changed)
        except duckdb.Error:
            kept.unlink()
    return False


def _keep(path: Path, statements: tuple[str, ...]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.iterdir():
        if time.time() - old.stat().st_mtime > OUTDATED_S:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    with TemporaryDirectory(prefix=".views-", dir=path.parent) as folder:
        beside = Path(folder) / path.name
        _build(beside, NO_LAKE, statements)
        move_into_place(beside, path)


def _adapted(path: Path, lake: LakePath, changed: list[str]) -> bool:
    """Whether these could be replaced: not if one has other columns now, as what selects from it has them too."""
    with _attached(path, lake) as connection:
        before = _columns(connection)
        for statement in changed:
            connection.execute(_CREATE.sub("CREATE OR REPLACE ", statement, count=1))
        _comment(connection)
        of_macros = [one for table in TABLES for one in _columns_of_rows(connection, table)]
        return _columns(connection) == before and of_macros == [
            one for table in TABLES for one in before if one[0] == table
        ]


def _build(path: Path, lake: LakePath, statements: tuple[str, ...]) -> None:
    with _attached(path, lake) as connection:
        for statement in statements:
            connection.execute(statement)
        _comment(connection)


@contextmanager
def _attached(path: Path, lake: LakePath) -> Iterator[duckdb.DuckDBPyConnection]:
    """Use a file in one transaction, where this lake can be read."""
    attached = {"path": str(path), "version": STORAGE_VERSION}
    with duckdb.connect() as connection:
        let_read(connection, lake)
        connection.execute(sql("ATTACH {{ path }} AS built (STORAGE_VERSION {{ version }})", **attached))
        connection.execute("USE built")
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
        connection.execute("USE memory")
        connection.execute("DETACH built")


def _columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    return [(view, column, kind) for view, column, kind, _comment in connection.execute(_COLUMNS).fetchall()]


def _columns_of_rows(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, str]]:
    """Those that a table's macro gives: its view remembers the columns of the macro that was replaced."""
    described = connection.execute(sql("DESCRIBE FROM {{ macro | name }}()", macro=f"{table}_rows")).fetchall()
    return [(table, column, kind) for column, kind, *_ in described]


def _comment(connection: duckdb.DuckDBPyConnection) -> None:
    """Comment on each column without one, and on its view."""
    found = connection.execute(_COLUMNS).fetchall()
    columns = [(view, column) for view, column, _kind, comment in found if comment is None]
    for statement in comment_statements(columns):
        connection.execute(statement)
