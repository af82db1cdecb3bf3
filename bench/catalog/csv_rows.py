"""A CSV text as frozen rows: Pydantic reads each cell as the type of its field; an error names file, line and column.

A row is a frozen dataclass, and the header has its fields in any order. An empty cell is None and never 0.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Annotated, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from bench.errors import CatalogError


def _whole(cell: object) -> object:
    return float(cell) if isinstance(cell, str) else cell  # some files print large whole numbers as floats


def _flag(cell: object) -> object:
    return {"True": True, "False": False}.get(cell) if isinstance(cell, str) else cell


def _day(cell: object) -> object:
    return date.fromisoformat(cell) if isinstance(cell, str) else cell


# What a cell may hold; a number's unit is the end of its column's name. An error quotes the description.
Count = Annotated[int, BeforeValidator(_whole), Field(ge=0, description="a whole number at least 0")]
Above = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a number above 0")]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False, description="a number above 0 and at most 1")]
Flag = Annotated[bool, BeforeValidator(_flag), Field(description="True or False")]
Day = Annotated[date, BeforeValidator(_day), Field(description="a date as 2026-11-22")]


@dataclass(frozen=True, kw_only=True)
class CsvRow:
    """One row of a file of facts, with the source of the facts."""

    KEY: ClassVar[tuple[str, ...]]  # the columns that no two rows share

    source: str

    @classmethod
    def table(cls, text: str, where: str) -> tuple[Self, ...]:
        """Every row of a file's text, in its order; `where` is the file's name for CatalogError."""
        adapter = TypeAdapter(cls)  # built here, in milliseconds: only the rows that are read need one
        rows: dict[tuple[object, ...], Self] = {}
        for line, cells in _lines(text, where, [field.name for field in fields(cls)]):
            try:
                row = adapter.validate_python({name: cell if cell.strip() else None for name, cell in cells.items()})
            except ValidationError as error:
                raise CatalogError(f"{where}:{line}: {_explain(error, cls, cells)}") from error
            key = tuple(getattr(row, name) for name in cls.KEY)
            if key in rows:
                values = ", ".join(map(str, key))
                raise CatalogError(
                    f"{where}:{line}: column {cls.KEY[0]!r}: {values} is there already: keep one of them"
                )
            rows[key] = row
        return tuple(rows.values())


def _lines(text: str, where: str, names: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        header = next(reader, [])
        _require_header(header, where, names)
        for cells in reader:
            if len(cells) != len(header):
                raise CatalogError(f"{where}:{reader.line_num}: {len(cells)} cells under {len(header)} columns")
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise CatalogError(f"{where}:{reader.line_num}: not CSV: {error}") from error


def _require_header(header: list[str], where: str, names: Sequence[str]) -> None:
    for name in header:
        if name not in names or header.count(name) > 1:
            raise CatalogError(f"{where}:1: column {name!r} is unknown or there twice; there are {', '.join(names)}")
    for name in names:
        if name not in header:
            raise CatalogError(f"{where}:1: the column {name!r} is missing")


def _explain(error: ValidationError, row: type[CsvRow], cells: dict[str, str]) -> str:
    name = str(error.errors()[0]["loc"][0])
    found = repr(cells[name]) if cells[name].strip() else "empty"
    return f"column {name!r} is {found}: give {_expected(get_type_hints(row, include_extras=True)[name])}"


def _expected(hint: object) -> str:
    """What a cell of this type must hold; of `X | None`, what X must."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    described = (each.description for each in getattr(hint, "__metadata__", ()) if isinstance(each, FieldInfo))
    inner = (_expected(each) for each in get_args(hint) if get_origin(hint) is not Annotated)
    return next((text for text in (*described, *inner) if text), "a text")
