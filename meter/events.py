"""Every event of every answer, by column: what events.bin holds."""

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

NO_TIME = -(2**63)  # stands for null: columns are integers
KINDS = ("role", "content", "reasoning", "tool", "finish", "usage", "done", "comment", "error", "embedding")
_COLUMNS = (
    ("event_at_ns", "q", "<i8"),
    ("event_kernel_ns", "q", "<i8"),
    ("event_tokens", "i", "<i4"),
    ("event_read", "i", "<i4"),
    ("event_bytes", "i", "<i4"),
    ("event_kind", "B", "|u1"),
)


def _empty() -> dict[str, "array[int]"]:
    return {name: array(code) for name, code, _written in _COLUMNS}


@dataclass(slots=True)
class Events:
    """Events in the order of their requests; a column each, all of one length."""

    columns: dict[str, "array[int]"] = field(default_factory=_empty)

    def __len__(self) -> int:
        """How many events."""
        return len(self.columns["event_kind"])

    def append(self, *values: int) -> None:
        """Add an event; the values are in the order of the columns."""
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def take(self, other: "Events", first: int, count: int) -> None:
        """Add some events of another table."""
        for name, column in self.columns.items():
            column.extend(other.columns[name][first : first + count])

    def pack(self) -> Iterator[bytes]:
        """Yield the columns one after another, little-endian."""
        for column in self.columns.values():
            if sys.byteorder == "big":
                column = array(column.typecode, column)  # noqa: PLW2901 -- a copy, the table stays as it is
                column.byteswap()
            yield column.tobytes()

    def describe(self) -> dict[str, object]:
        """Describe the file for meter.json, so that a reader can parse it without this code."""
        return {
            "count": len(self),
            "columns": [[name, written] for name, _code, written in _COLUMNS],
            "kinds": list(KINDS),
        }
