"""Write the lake's files: staged, flushed to disk, then moved into place, by one loader at a time."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.errors import LoadIntoWarehouseError
from nights.durable import make_folder
from nights.journal import complete, is_pending
from warehouse.lake.bucket.client import lake_bucket
from warehouse.lake.bucket.location import lake_folder, lake_location
from warehouse.lake.bucket.working_copy import pull
from warehouse.schema.columns import COLUMNS, PARTITION, Table, arrow_schema
from warehouse.schema.row import Row
from warehouse.views.tables import COLUMNS_MARK, PART, columns_digest

STAGING = ".staging"
VALIDATION = "validation"  # folder of the lake: great-expectations' results of each night
# Page of the night, and of what is written again when the night is judged.
DOCS, DOCS_OF_SERIES = "data-docs.html", "data-docs-series.html"
IMPORTS = "imports"  # beside the lake: the files of other tools
# Large enough for good compression, small enough to limit memory.
ROW_GROUP_BYTES = 32 << 20


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn write errors into LoadIntoWarehouseError naming the file and what to do."""
    try:
        yield
    except (OSError, duckdb.IOException, pa.ArrowException) as error:
        name = getattr(error, "filename", None) or what
        said = getattr(error, "strerror", None) or str(error)
        raise LoadIntoWarehouseError(
            f"{name} could not be written: {said}; the run folders are unchanged. "
            f"Free disk space or grant write permission there, then load again"
        ) from error


@contextmanager
def one_loader(data: Path, *, heals: bool = False) -> Iterator[Path]:
    """Lock the lake for this process and return its path; other loaders wait.

    A load that was killed while its files came into place is completed; what was only staged is deleted. Where the lake
    is in a bucket, the path is that of a copy of its small tables, as they are in the bucket now; of a loader that
    `heals` the lake, without those whose objects are missing.
    """
    lake, location = lake_folder(data), lake_location()
    make_folder(lake)
    with (lake / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete(lake)
        _delete_staged(lake)
        if location is not None:
            pull(lake_bucket(location), lake, lake / STAGING, without_missing=heals)
            _delete_staged(lake)  # folders that are empty now
        try:
            yield lake
        finally:
            if not is_pending(lake):
                _delete_staged(lake)


def _delete_staged(lake: Path) -> None:
    for staging in (lake / STAGING, lake.with_name(IMPORTS) / STAGING):
        shutil.rmtree(staging, ignore_errors=True)


def partition(lake: Path, table: str, night: str) -> Path:
    """The folder of one table and night."""
    return lake / table / f"{PARTITION}={night}"


class PartWriter:
    """Writes the file of one table and night in row groups of bounded size."""

    def __init__(self, lake: Path, table: Table, night: str) -> None:
        folder = partition(lake, table, night)
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = arrow_schema(table)
        self._file = (folder / PART).open("wb")
        # No dictionary for gaps: hardly two are equal, but they are small numbers.
        named = [column.name for column in COLUMNS[table] if column.type in ("text", "integer")]
        packed = {
            f"{column.name}.list.element": "DELTA_BINARY_PACKED" for column in COLUMNS[table] if column.type == "counts"
        }
        mark = {COLUMNS_MARK: columns_digest(table).encode()}
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema.with_metadata(mark),
            compression="zstd",
            use_dictionary=named,
            column_encoding=packed,
        )
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self.row_count = 0

    def __enter__(self) -> Self:
        """Start with an empty file."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Finish the file and flush it to disk; after an error it stays incomplete in the staging folder."""
        with self._file:
            if error is None:
                self._flush()
            # Also after an error: an open writer would write to the closed file when it is garbage-collected.
            self._writer.close()
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    def add(self, rows: pa.Table) -> None:
        """Append rows."""
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        self.row_count += len(rows)
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting, self._waiting_bytes = [], 0


def write_rows(lake: Path, table: Table, night: str, rows: Sequence[Row]) -> None:
    """Write the file of one table and night from rows."""
    schema = arrow_schema(table)
    stored = [{name: row[name] for name in schema.names} for row in rows]
    with PartWriter(lake, table, night) as part:
        part.add(pa.Table.from_pylist(stored, schema=schema))
