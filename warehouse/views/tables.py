"""The views over the files of the lake: one a table, with what is stored of whole months."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import IO, Literal, Protocol, Self

from warehouse.schema.columns import COLUMNS, PARTITION, Table

MONTH = "month"  # folders of files of whole months, beside the folders of nights
MONTHS_COLUMNS = "months.sha256"  # beside them: the columns that all of them have
OF_NIGHTS = "-- OF NIGHTS"  # placeholder for a condition on nights, in views without that column
# Columns that a file has in one of two units only.
_AS_US = "least(round(gap::DOUBLE * 1000), 2147483647)::INTEGER"  # as the rows of a run are clamped
_COMPUTED: dict[str, dict[str, str]] = {
    "requests": {
        "itl_us": f"coalesce(itl_us, list_transform(itl_ms, lambda gap: {_AS_US}))",
        "itl_ms": "coalesce(itl_ms, list_transform(itl_us, lambda gap: (gap / 1000.0)::FLOAT))",
    }
}
_PART = "part-0.parquet"
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
    """Whether every file of a month has today's columns, so that one of them tells those of all."""
    file = lake / table / MONTHS_COLUMNS
    return file.is_file() and file.read_bytes().decode() == columns_digest(table)


def empty_rows(table: Table) -> str:
    """A query of no rows with every declared column and its type."""
    typed = ", ".join(f'CAST(NULL AS {column.duckdb_type}) AS "{column.name}"' for column in COLUMNS[table])
    return f"SELECT {typed} WHERE false"


def table_view(lake: LakePath, table: Table) -> str:
    """A view with every declared column, also for nights written before it was declared and for an empty lake."""
    parts = [empty_rows(table)]
    months = months_in(lake / table)
    if months:
        # To bind a view that joins files by name opens each of them: 90 ms for those of five years.
        joined = "" if are_months_alike(lake, table) else ", union_by_name=true"
        parts.append(f"FROM read_parquet({_months(lake / table, months)}, hive_partitioning=false{joined})")
    if nights := _loose_nights(lake, table, months):
        options = f"hive_partitioning=true, hive_types={{'{PARTITION}': VARCHAR}}, union_by_name=true"
        parts.append(f"SELECT * FROM read_parquet({nights}, {options})")  # noqa: S608 - the paths are quoted
    rows = " UNION ALL BY NAME ".join(parts)
    if computed := _COMPUTED.get(table):
        replaced = ", ".join(f"{sql} AS {name}" for name, sql in computed.items())
        rows = f"SELECT * REPLACE ({replaced}) FROM ({rows})"  # noqa: S608 - names of ours
    return f"CREATE VIEW {table} AS {rows}"


def _loose_nights(lake: LakePath, table: Table, months: set[str]) -> str | None:
    """Patterns of the files of nights that no file of a month has, as SQL; None without such nights."""
    if not months:
        some = any((lake / table / f"{PARTITION}={night}" / _PART).is_file() for night in nights_in(lake / table))
        return _files([_night_files(lake, table, "*")]) if some else None
    of_nights = {night: month_of(night) for night in nights_in(lake / table)}
    dated = {month for month in of_nights.values() if month and month not in months}
    undated = [night for night, month in of_nights.items() if month is None]
    patterns = [f"{month}*" for month in sorted(dated)] + [glob_pattern(night) for night in sorted(undated)]
    return _files([_night_files(lake, table, pattern) for pattern in patterns]) if patterns else None


def _night_files(lake: LakePath, table: Table, pattern: str) -> str:
    return f"{glob_pattern(lake)}/{table}/{PARTITION}={pattern}/{_PART}"


def with_months(lake: LakePath, derived: LakePath, name: str, sql: str) -> str:
    """A view that takes months from their files and computes the other nights."""
    months = months_in(derived / name)
    whole = months_in(lake / "measurements")
    if not months or months != whole:
        return sql
    head, body = sql.split(f"CREATE VIEW {name} AS", maxsplit=1)
    stored = f"SELECT * FROM read_parquet({_months(derived / name, months)}, hive_partitioning=false)"  # noqa: S608
    last = f"{max(months)}~"  # sorts after each night of the last month
    nights = nights_in(lake / "measurements")
    undated = [night for night in sorted(nights) if night <= last and month_of(night) is None]
    where = f"{PARTITION} > '{last}'"
    if undated:
        where += f" OR {PARTITION} IN ({', '.join(map(_quoted, undated))})"
    computed = _of_nights(body.strip().removesuffix(";"), where)
    return f"{head}CREATE VIEW {name} AS {stored} UNION ALL BY NAME {computed}"


def _of_nights(query: str, where: str) -> str:
    """A query, of these nights only: where it says so itself, or in its rows."""
    if OF_NIGHTS in query:
        return query.replace(OF_NIGHTS, f"AND ({where})")
    return f"SELECT * FROM ({query}) WHERE {where}"  # noqa: S608


def _months(folder: LakePath, months: Iterable[str]) -> str:
    """The files of these months, as SQL; named one by one, so that a new one is not read beside its nights."""
    return _files([f"{glob_pattern(folder)}/{MONTH}={month}/{_PART}" for month in sorted(months)])


def _files(patterns: list[str]) -> str:
    return f"[{', '.join(map(_quoted, patterns))}]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def glob_pattern(folder: LakePath | str) -> str:
    """A pattern that matches this folder only: brackets escape characters with a meaning in a glob."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(folder))
