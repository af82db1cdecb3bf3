"""A table of a report, before it is written in a format."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows by column name; None is a value that is not known, and never 0."""

    title: str
    rows: tuple[dict[str, Any], ...]
    note: str = ""


@dataclass(frozen=True)
class SuiteReport:
    """The report of a suite over one of its nights."""

    suite: str
    title: str
    night: str
    target: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
