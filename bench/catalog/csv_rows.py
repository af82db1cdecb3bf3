"""A CSV text as frozen values: each cell is read as the type of its field, and one that is wrong is named by its place.

A row is a frozen dataclass; the header has its fields, in any order. An empty cell is None and never 0.
"""

import csv
import io
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Annotated, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from bench.errors import CatalogError


@dataclass(frozen=True)
class Range:
    """What a number must lie in; its unit is the end of its column's name."""

    low: float = 0.0
    high: float = math.inf
    is_low_out: bool = False  # whether `low` itself is too low

    def holds(self, number: float) -> bool:
        """Whether it does."""
        return (self.low < number if self.is_low_out else self.low <= number) and number <= self.high

    def __str__(self) -> str:
        """What it asks for, in words."""
        low = f"{'above' if self.is_low_out else 'at least'} {self.low:g}"
        return low if math.isinf(self.high) else f"{low} and at most {self.high:g}"


Count = Annotated[int, Range()]
Above = Annotated[float, Range(is_low_out=True)]
Share = Annotated[float, Range(high=1.0, is_low_out=True)]


@dataclass(frozen=True, kw_only=True)
class CsvRow:
    """One row of a file of facts: where it is from stands in it."""

    KEY: ClassVar[tuple[str, ...]]  # the columns that no two rows share

    source: str

    @classmethod
    def table(cls, text: str, where: str) -> tuple[Self, ...]:
        """Every row of a file's text, in its order; `where` is the file's name for CatalogError."""
        rows: dict[tuple[object, ...], Self] = {}
        for line, cells in _lines(text, where, _readers(cls)):
            row = cls(**cells)  # type: ignore[arg-type] # each value is of its field's type: _readers saw to that
            key = tuple(getattr(row, name) for name in cls.KEY)
            if key in rows:
                told = ", ".join(map(str, key))
                raise CatalogError(f"{where}:{line}: column {cls.KEY[0]!r}: {told} is there already: keep one of them")
            rows[key] = row
        return tuple(rows.values())


@dataclass(frozen=True)
class _Reader:
    """How a cell of one column is read."""

    read: Callable[[str], object]
    is_optional: bool
    expected: str  # what is said of a cell that cannot be read
    limits: Range | None

    def value(self, cell: str) -> object:
        """Its value; ValueError, saying what would be right, where it has none."""
        if not cell.strip():
            if self.is_optional:
                return None
            raise ValueError(f"is empty: give {self.expected}")
        try:
            value = self.read(cell)
        except ValueError as error:
            raise ValueError(f"is {cell!r}: give {self.expected}") from error
        if self.limits is not None and isinstance(value, int | float) and not self.limits.holds(value):
            raise ValueError(f"is {cell}: give {self.expected} {self.limits}")
        return value


def _lines(text: str, where: str, readers: Mapping[str, _Reader]) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        header = next(reader, [])
        _require_header(header, where, readers)
        for cells in reader:
            if len(cells) != len(header):
                raise CatalogError(f"{where}:{reader.line_num}: {len(cells)} cells under {len(header)} columns")
            yield reader.line_num, _values(dict(zip(header, cells, strict=True)), f"{where}:{reader.line_num}", readers)
    except csv.Error as error:
        raise CatalogError(f"{where}:{reader.line_num}: not CSV: {error}") from error


def _require_header(header: list[str], where: str, readers: Mapping[str, _Reader]) -> None:
    for name in header:
        if name not in readers or header.count(name) > 1:
            raise CatalogError(f"{where}:1: column {name!r} is unknown or there twice; there are {', '.join(readers)}")
    for name in readers:
        if name not in header:
            raise CatalogError(f"{where}:1: the column {name!r} is missing")


def _values(cells: Mapping[str, str], place: str, readers: Mapping[str, _Reader]) -> dict[str, object]:
    values = {}
    for name, cell in cells.items():
        try:
            values[name] = readers[name].value(cell)
        except ValueError as error:
            raise CatalogError(f"{place}: column {name!r} {error}") from error
    return values


def _readers(row: type[CsvRow]) -> dict[str, _Reader]:
    hints = get_type_hints(row, include_extras=True)
    return {field.name: _reader_of(hints[field.name]) for field in fields(row)}


def _reader_of(hint: object) -> _Reader:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kind = next(one for one in options if one is not types.NoneType)
    limits = next((one for one in getattr(kind, "__metadata__", ()) if isinstance(one, Range)), None)
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(plain) is Literal:
        words = get_args(plain)
        return _Reader(_one_of(words), len(options) > 1, f"one of {', '.join(words)}", None)
    read, expected = _READ[plain]
    return _Reader(read, len(options) > 1, expected, limits)


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def read(cell: str) -> str:
        if cell not in words:
            raise ValueError
        return cell

    return read


def _int(cell: str) -> int:
    number = _float(cell)  # some large whole numbers are printed as floats
    if not number.is_integer():
        raise ValueError
    return int(number)


def _float(cell: str) -> float:
    number = float(cell)
    if not math.isfinite(number):
        raise ValueError
    return number


def _bool(cell: str) -> bool:
    if cell not in ("True", "False"):
        raise ValueError
    return cell == "True"


_READ: dict[object, tuple[Callable[[str], object], str]] = {
    str: (str, "a text"),
    int: (_int, "a whole number"),
    float: (_float, "a number"),
    bool: (_bool, "True or False"),
    date: (date.fromisoformat, "a date as 2026-11-22"),
}
