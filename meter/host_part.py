"""What a client host sends back: its rows, events and health as JSON and bytes, since nothing it sends is executed."""

import json
import sys
from array import array
from collections import Counter
from typing import IO, Any

from meter.errors import OutsideWorldError
from meter.record import Part


def pack(part: Part, more: dict[str, Any]) -> list[bytes]:
    """One line of JSON with `more` and the totals of a part, and the bytes that follow it."""
    rows = json.dumps(part.rows, separators=(",", ":")).encode()
    head = {
        **more,
        "row_bytes": len(rows),
        "event_count": len(part.events),
        "lag_count": len(part.lags_ns),
        "reads": part.reads,
        "token_events": part.token_events,
        "merged_late": part.merged_late,
        "between": dict(part.between),
        "tls": part.tls,
    }
    return [json.dumps(head).encode() + b"\n", rows, *part.events.pack(), _little_endian(part.lags_ns).tobytes()]


def unpack(head: dict[str, Any], file: IO[bytes]) -> Part:
    """Read the part that follows its line; raises OutsideWorldError where it was cut."""
    part = Part(json.loads(_exactly(file, head["row_bytes"])))
    for name, column in part.events.columns.items():
        part.events.columns[name] = _read(file, column.typecode, head["event_count"])
    part.lags_ns = _read(file, "q", head["lag_count"])
    part.reads, part.token_events = head["reads"], head["token_events"]
    part.merged_late, part.between, part.tls = head["merged_late"], Counter(head["between"]), head["tls"]
    return part


def _read(file: IO[bytes], typecode: str, count: int) -> "array[int]":
    column = array(typecode)
    column.frombytes(_exactly(file, count * column.itemsize))
    return _little_endian(column)


def _little_endian(column: "array[int]") -> "array[int]":
    """The column as it is on a little-endian host; the same twice is the column itself."""
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column


def _exactly(file: IO[bytes], count: int) -> bytes:
    found = file.read(count)
    if len(found) != count:
        raise OutsideWorldError(f"the report was cut: {len(found)} of {count} bytes came")
    return found
