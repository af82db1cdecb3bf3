"""Views are copied from the cache folder, and are the same as if each had been built."""

import os
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.warehouse.conftest import NIGHT
from warehouse.lake.database import DATABASE, build_warehouse
from warehouse.lake.query import run_sql
from warehouse.lake.view_file import NO_LAKE, kept_file, views_over, write_views
from warehouse.schema.columns import PARTITION, arrow_schema

# The words of each view are sorted, since DuckDB prints the list of a REPLACE in any order.
VIEWS = "SELECT view_name, list_sort(regexp_split_to_array(sql, '[ ,()]+')), comment FROM duckdb_views()"
MACROS = "SELECT function_name, list_sort(regexp_split_to_array(macro_definition, '[ ,()]+')) FROM duckdb_functions()"
COLUMNS = "SELECT table_name, column_index, column_name, data_type, comment FROM duckdb_columns()"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The views over an empty lake in a cache folder of the test's own, with a mark by which a copy is told."""
    digest, _statements = views_over(NO_LAKE)
    build_warehouse(folder(tmp_path / "first"))
    usual = kept_file(digest)
    monkeypatch.setenv("NIGHTBENCH_CACHE", str(tmp_path / "cache"))
    path = kept_file(digest)
    path.parent.mkdir(parents=True)
    shutil.copyfile(usual, path)
    mark(path, "copied")
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def mark(path: Path, comment: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(f"COMMENT ON VIEW results IS '{comment}'")


def marked(path: Path) -> str:
    with duckdb.connect(path, read_only=True) as connection:
        ((comment,),) = connection.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'results'").fetchall()
    return str(comment)


def write_rows(data: Path, rows: pa.Table) -> None:
    part = data / "lake" / "measurements" / f"{PARTITION}={NIGHT}" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(rows, part)


def views_of(path: Path) -> list[list[tuple[object, ...]]]:
    with duckdb.connect(path, read_only=True) as connection:
        asked = (VIEWS, MACROS, COLUMNS)
        return [connection.execute(f"{sql} WHERE NOT internal ORDER BY ALL").fetchall() for sql in asked]


def test_another_data_folder_gets_a_copy(kept: Path, tmp_path: Path) -> None:
    before = kept.read_bytes()

    assert marked(build_warehouse(folder(tmp_path / "second"))) == "copied"
    assert kept.read_bytes() == before


@pytest.mark.usefixtures("kept")
def test_a_copy_over_a_night_is_what_is_built_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = folder(tmp_path / "night")
    write_rows(data, arrow_schema("measurements").empty_table())
    copied = build_warehouse(data)

    (tmp_path / "file").touch()
    monkeypatch.setenv("NIGHTBENCH_CACHE", str(tmp_path / "file"))
    write_views(tmp_path / DATABASE, data / "lake", views_over(data / "lake")[1])

    assert marked(copied) == "copied"
    mark(copied, marked(tmp_path / DATABASE))
    assert views_of(copied) == views_of(tmp_path / DATABASE)
    assert str(data) in str(views_of(copied)[1])


def test_a_file_of_the_cache_that_is_broken_is_deleted_and_not_used(kept: Path, tmp_path: Path) -> None:
    kept.write_bytes(b"no database")

    assert marked(build_warehouse(folder(tmp_path / "second"))) != "copied"
    assert not kept.exists()


def test_a_column_that_is_not_declared_is_in_the_views_that_select_all(kept: Path, tmp_path: Path) -> None:
    data = folder(tmp_path / "night")
    write_rows(data, pa.table({"later_declared": [7]}))

    assert run_sql(data, "SELECT later_declared FROM standing").rows == ((7,),)
    assert kept.exists()


def test_files_that_no_version_uses_are_deleted(kept: Path, tmp_path: Path) -> None:
    old, killed = kept.with_name("old.duckdb"), folder(kept.with_name(".views-killed"))
    old.touch()
    for path in (old, killed):
        os.utime(path, (0, 0))
    kept.unlink()

    build_warehouse(folder(tmp_path / "second"))

    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
