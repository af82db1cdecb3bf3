"""The views over the files of the lake: one a table, with what is stored of whole months."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, Protocol, Self

from warehouse.schema.columns import COLUMNS, PARTITION, Table
from warehouse.sql import Sql, sql

MONTH = "month"  # folders of files of whole months, beside the folders of nights
MONTHS_COLUMNS = "months.sha256"  # beside them: the columns that all of them have
# Folders in which a lake in a bucket also shows the nights, one for each set of columns: to join files by name opens
# each of them, and each would be a request.
BY_COLUMNS = "columns-"
PART = "part-0.parquet"  # the one file of a night or month
COLUMNS_MARK = b"nightbench.columns"  # key in the footer of a file, of the columns that it was written with
# To join files by name parses the footer of each: 1 ms with 300 columns, in every question.
_WIDE = frozenset[Table]({"measurements"})
# Columns that a file has in one of two units only.
_AS_US = "least(round(gap::DOUBLE * 1000), 2147483647)::INTEGER"  # as the rows of a run are clamped
_COMPUTED = {
    "requests": Sql(
        f"coalesce(itl_us, list_transform(itl_ms, lambda gap: {_AS_US})) AS itl_us, "
        "coalesce(itl_ms, list_transform(itl_us, lambda gap: (gap / 1000.0)::FLOAT)) AS itl_ms"
    )
}
_EMPTY = (
    "SELECT {% for one in columns %}CAST(NULL AS {{ one.duckdb_type | sql }}) AS {{ one.name | name }}"
    "{% if not loop.last %}, {% endif %}{% endfor %} WHERE false"
)
_FILES = "FROM read_parquet({{ files }}, hive_partitioning=false{% if is_joined %}, union_by_name=true{% endif %})"
_NIGHTS = (
    "SELECT * FROM read_parquet({{ files }}, hive_partitioning=true, hive_types={ {{- partition }}: VARCHAR}"
    "{% if is_joined %}, union_by_name=true{% endif %})"
)
_VIEW = (
    "CREATE VIEW {{ table }} AS "
    "{% if computed %}SELECT * REPLACE ({{ computed }}) FROM ({{ rows }}){% else %}{{ rows }}{% endif %}"
)
_BY_NAME = " UNION ALL BY NAME "
_DATED = re.compile(r"\d{4}-\d{2}(?=\D|$)")


class LakePath(Protocol):
    """A file or folder of a lake, on disk or in a bucket; its text is its address in SQL."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    def __truediv__(self, child: str, /) -> Self:
        """What has this name in this folder, whether or not it exists."""

    def iterdir(self) -> Iterator[Self]:
        """What is directly in this folder."""

    def is_dir(self) -> bool:
        """Whether it is a folder."""

    def is_file(self) -> bool:
        """Whether it is a file."""

    def read_bytes(self) -> bytes:
        """The content of this file."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """Open this file for reading."""


def month_of(night: str) -> str | None:
    """The month that a night's name begins with; None if it begins with no date."""
    found = _DATED.match(night)
    return found[0] if found else None


def nights_in(table: LakePath) -> list[str]:
    """The nights of which a table has a folder: from names alone, since there are thousands in five years."""
    names = [path.name for path in table.iterdir()] if table.is_dir() else []
    return [name.removeprefix(f"{PARTITION}=") for name in names if name.startswith(f"{PARTITION}=")]


def months_in(table: LakePath) -> set[str]:
    """The months of which a table or view has one file."""
    names = [path.name for path in table.iterdir()] if table.is_dir() else []
    return {name.removeprefix(f"{MONTH}=") for name in names if name.startswith(f"{MONTH}=")}


def columns_digest(table: Table) -> str:
    """A hash of a table's columns, to be kept beside files of months that all have them."""
    return hashlib.sha256(empty_rows(table).encode()).hexdigest()


def are_months_alike(lake: LakePath, table: Table) -> bool:
    """Whether every file of a month has today's columns, so that one of them has those of all."""
    file = lake / table / MONTHS_COLUMNS
    return file.is_file() and file.read_bytes().decode() == columns_digest(table)


def empty_rows(table: Table) -> Sql:
    """A query of no rows with every declared column and its type."""
    return sql(_EMPTY, columns=COLUMNS[table])


def table_view(lake: LakePath, table: Table) -> str:
    """A view with every declared column, also for nights written before it was declared and for an empty lake."""
    months = months_in(lake / table)
    nights, are_alike = _loose_nights(lake, table, months)
    is_whole = bool(months) and are_months_alike(lake, table)
    # The first part has every column in its order.
    parts = [] if is_whole and are_alike else [empty_rows(table)]
    if months:
        # To bind a view that joins files by name opens each of them: 90 ms for those of five years.
        parts.append(sql(_FILES, files=_months(lake / table, months), is_joined=not is_whole))
    rows = Sql(_BY_NAME.join([*parts, *nights]))
    return sql(_VIEW, table=Sql(table), computed=_COMPUTED.get(table), rows=rows)


def loose_rows(lake: LakePath, table: Table) -> Sql:
    """A query of the rows of the nights that no file of a month has."""
    nights, are_alike = _loose_nights(lake, table, months_in(lake / table))
    return Sql(_BY_NAME.join(nights if nights and are_alike else [empty_rows(table), *nights]))


def _loose_nights(lake: LakePath, table: Table, months: set[str]) -> tuple[list[Sql], bool]:
    """Queries of the rows of nights that no file of a month has, and whether all of these have today's columns."""
    if groups := _groups_of_columns(lake):
        rows = [_rows_of(group, table, _loose(group / table, months), months, is_joined=False) for group in groups]
        return [query for query in rows if query], False
    loose = _loose(lake / table, months)
    are_alike = bool(months) and _have_todays_columns(lake / table, table, loose)
    query = _rows_of(lake, table, loose, months, is_joined=not are_alike)
    return [query] if query else [], are_alike


def _groups_of_columns(lake: LakePath) -> list[LakePath]:
    """The same nights apart for each set of columns that files have; only a lake in a bucket knows these."""
    if isinstance(lake, Path):
        return []
    return sorted((folder for folder in lake.iterdir() if folder.name.startswith(BY_COLUMNS)), key=str)


def _loose(folder: LakePath, months: set[str]) -> dict[str, str | None]:
    """The nights of a table that no file of a month has, with their months."""
    return {night: month for night in nights_in(folder) if (month := month_of(night)) not in months}


def _rows_of(
    lake: LakePath, table: Table, loose: dict[str, str | None], months: set[str], *, is_joined: bool
) -> Sql | None:
    """A query of the rows of these nights; None if there are none."""
    patterns = [f"{month}*" for month in sorted({month for month in loose.values() if month})]
    patterns += sorted(glob_pattern(night) for night, month in loose.items() if month is None)
    if not months:
        some = any((lake / table / f"{PARTITION}={night}" / PART).is_file() for night in loose)
        patterns = ["*"] if some else []
    if not patterns:
        return None
    files = [f"{glob_pattern(lake)}/{table}/{PARTITION}={pattern}/{PART}" for pattern in patterns]
    return sql(_NIGHTS, files=files, partition=PARTITION, is_joined=is_joined)


def _have_todays_columns(folder: LakePath, table: Table, nights: Iterable[str]) -> bool:
    """Whether the file of each of these nights says so in its footer; in a bucket each would be a request."""
    if table not in _WIDE or not isinstance(folder, Path):
        return False
    mark = columns_digest(table).encode()
    return all(mark in _footer(folder / f"{PARTITION}={night}" / PART) for night in nights)


def _footer(file: Path) -> bytes:
    """The bytes at the end of a Parquet file that describe it; none if there is no such file.

    They are not parsed, which takes as long as to bind the file.
    """
    with suppress(OSError), file.open("rb") as opened:
        opened.seek(-8, os.SEEK_END)
        size = int.from_bytes(opened.read(4), "little")
        opened.seek(-8 - size, os.SEEK_END)
        return opened.read(size)
    return b""


def stored_rows(lake: LakePath, derived: LakePath, view: str) -> Sql | None:
    """A query of what the files of months store of a view; None if they are not those of the measurements."""
    months = months_in(derived / view)
    if not months or months != months_in(lake / "measurements"):
        return None
    return sql(_FILES, files=_months(derived / view, months), is_joined=False)


def _months(folder: LakePath, months: Iterable[str]) -> list[str]:
    """The files of these months; named one by one, so that a new one is not read beside its nights."""
    return [f"{glob_pattern(folder)}/{MONTH}={month}/{PART}" for month in sorted(months)]


def glob_pattern(folder: LakePath | str) -> str:
    """A pattern that matches this folder only: brackets escape characters with a meaning in a glob."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(folder))
