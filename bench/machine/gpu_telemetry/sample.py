"""One GPU at one moment, and the cells that the tools print it in."""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.errors import UnreadableResultError
from bench.machine.gpu_tools import MIB

_NUMBER = re.compile(r"\(?\s*(?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*[a-zA-Z%°]*\s*\)?")
# AMD's library writes the highest unsigned number where a sensor has no value, and some versions print it.
_NO_VALUE = frozenset({float(2**bits - 1) for bits in (16, 32, 64)})
SHOWN_MAX = 120  # characters of a line in an error


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSample:
    """One GPU as its tool printed it; None where the tool has no value. Counters are since boot."""

    index: int
    uuid: str | None = None
    power_w: float | None = None
    power_cap_w: float | None = None
    energy_j: float | None = None
    edge_c: float | None = None
    junction_c: float | None = None
    memory_c: float | None = None
    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    used_bytes: int | None = None
    busy_share: float | None = None
    memory_busy_share: float | None = None
    is_throttled: bool | None = None
    throttle_reasons: str | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None


class LineReader(Protocol):
    """Turns the lines of one run of a tool into samples."""

    def read(self, line: str) -> tuple[GpuSample, ...]:
        """The samples of a line: none of a header. Raises UnreadableResultError for a line that is neither."""
        ...


@dataclass(frozen=True, kw_only=True)
class TelemetryTool:
    """A program that prints the telemetry of every GPU.

    `commands`: the richest first, since an older version refuses what it does not know. `identity` prints the UUIDs
    where the telemetry does not; the reader of one run gets its output, or nothing.
    """

    name: str
    commands: Sequence[Sequence[str]]
    reader: Callable[[str], LineReader]
    identity: Sequence[str] | None = None
    ends_each_time: bool = False  # prints one sample of each GPU and ends, instead of one each second


class CsvReader:
    """Reads rows by the names of the last header, which is the line that has these names."""

    def __init__(self, *names: str) -> None:
        self._needed = set(names)
        self._names: list[str] = []

    def cells(self, line: str) -> dict[str, str]:
        """The cells of a row by name; empty for a header or a blank line.

        A row with fewer cells than the header was cut off, so that its last cell may be cut, too, and is left out.
        """
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]
        except csv.Error as error:
            raise unreadable(line) from error
        if not any(cells):
            return {}
        if self._needed <= {plain(cell) for cell in cells}:
            self._names = [plain(cell) for cell in cells]
            return {}
        if not self._names or not 1 < len(cells) <= len(self._names):
            raise unreadable(line)
        whole = cells if len(cells) == len(self._names) else cells[:-1]
        return dict(zip(self._names, whole, strict=False))


def unreadable(line: str) -> UnreadableResultError:
    """The error for a line that is not a sample."""
    return UnreadableResultError(f"unknown line {line.strip()[:SHOWN_MAX]!r}")


def plain(name: str) -> str:
    """A column's name without its unit: `power.draw [W]` as `power_draw`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"\[[^\]]*\]", "", name.lower())).strip("_")


def number(cells: Mapping[str, str], *names: str) -> float | None:
    """The number of the first of these cells that has one, without its unit."""
    for name in names:
        found = _NUMBER.fullmatch(cells.get(name, "").strip())
        if found is not None:
            value = float(found["number"])
            if math.isfinite(value) and value not in _NO_VALUE:
                return value
    return None


def count(cells: Mapping[str, str], *names: str) -> int | None:
    """The same as a whole number."""
    value = number(cells, *names)
    return None if value is None else int(value)


def share(cells: Mapping[str, str], *names: str) -> float | None:
    """The same from percent."""
    value = number(cells, *names)
    return None if value is None else value / 100


def bytes_of_mib(cells: Mapping[str, str], *names: str) -> int | None:
    """The same from MiB."""
    value = number(cells, *names)
    return None if value is None else int(value * MIB)


def index_of(cells: Mapping[str, str], name: str, line: str) -> int:
    """The index of the GPU; raises UnreadableResultError if the row has none."""
    found = re.fullmatch(r"(?:card)?(\d{1,4})", cells.get(name, ""))
    if found is None:
        raise unreadable(line)
    return int(found[1])
