"""Expectations about the tables of a night, in great-expectations' own JSON: one suite for each table or view."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from bench.errors import SuiteError
from bench.frozen import Frozen

Severity = Literal["critical", "warning", "info"]


class Expectation(Frozen):
    """One expectation: its type in great-expectations, and what it is given there."""

    type: str
    kwargs: dict[str, Any]
    severity: Severity = "critical"
    notes: str | list[str] | None = None  # why, for whoever reads that it failed
    description: str | None = None
    meta: dict[str, Any] | None = None
    id: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about, in the order of its keys; none of an expectation about a whole table."""
        found = [value for key, value in self.kwargs.items() if key in ("column", "column_A", "column_B")]
        return (*found, *self.kwargs.get("column_list", ()))


class TableExpectations(Frozen):
    """The suite of one table or view, which is its name."""

    name: str
    expectations: Annotated[tuple[Expectation, ...], Field(min_length=1)]
    meta: dict[str, Any] | None = None
    notes: str | list[str] | None = None
    id: str | None = None


def parse_expectations(text: str, where: str) -> tuple[TableExpectations, ...]:
    """The suites of a file: one suite, or a list of them. Raises SuiteError with the file's line or the key."""
    try:
        raw = json.loads(text)
        suites = raw if isinstance(raw, list) else [raw]
        return TypeAdapter(tuple[TableExpectations, ...]).validate_json(json.dumps(suites))
    except json.JSONDecodeError as error:
        raise SuiteError(f"{where}:{error.lineno}: not JSON: {error.msg} in column {error.colno}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"][0 if isinstance(raw, list) else 1 :]))
        raise SuiteError(
            f"{where}: {key or 'the file'}: {first['msg']}; it must hold a suite of great-expectations, "
            'such as {"name": "requests", "expectations": [...]}, or a list of them'
        ) from error
