"""A column of the lake: name, type, unit, meaning and bounds."""

from dataclasses import dataclass
from typing import Literal

Type = Literal["text", "integer", "number", "flag", "moment", "texts", "gaps", "counts"]

_DUCKDB: dict[Type, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "flag": "BOOLEAN",
    "moment": "TIMESTAMP WITH TIME ZONE",
    "texts": "VARCHAR[]",
    "gaps": "FLOAT[]",
    "counts": "INTEGER[]",
}


@dataclass(frozen=True)
class Column:
    """One column; `low` and `high` bound the possible values, not the good ones."""

    name: str
    type: Type
    meaning: str
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    nullable: bool = True

    @property
    def is_withdrawable(self) -> bool:
        """Whether a finding about single metrics can remove it from the views: a number or histogram, no evidence."""
        is_measured = self.type in ("integer", "number") or self.name.endswith("_histogram")
        return self.nullable and is_measured and not self.name.startswith("ev_")

    @property
    def duckdb_type(self) -> str:
        """The name of its type in DuckDB."""
        return _DUCKDB[self.type]
