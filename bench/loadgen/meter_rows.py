"""The rows of a meter's requests.jsonl as columns: a night has millions, and no Python object is made of each."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from bench.metrics import UNKNOWN, Bools, Floats, Ints

NS = 1e-9
_REQUIRED = (
    *("index", "phase", "outcome", "error", "intended_at_ns", "send_start_ns", "done_at_ns"),
    *("prompt_tokens_counted", "output_tokens_counted", "event_first", "event_count"),
)
SERVER_TIMES_MS = ("time_to_first_token_ms", "queue_time_ms", "generation_time_ms", "mean_itl_ms")
_TEXTS = ("phase", "outcome", "error", "window", "model")
_SOMETIMES = (  # in the reports of some meters and loads
    *("window", "model", "connect_start_ns", "connect_end_ns", "cached_tokens"),
    *("prompt_tokens_planned", "output_tokens_planned", "cached_tokens_planned", "conversation", "turn"),
    "dimensions",
)
_SCHEMA = pa.schema(
    [
        *((name, pa.string() if name in _TEXTS else pa.int64()) for name in (*_REQUIRED, *_SOMETIMES)),
        ("answer_is_valid", pa.bool_()),
        ("server_metrics", pa.struct([(name, pa.float64()) for name in SERVER_TIMES_MS])),
    ]
)
_BLOCK_MAX = 1 << 30  # bytes that pyarrow reads at once


@dataclass(frozen=True)
class MeterRows:
    """Some rows of a report. A field that a row lacks is null."""

    table: Any  # pyarrow.Table

    def __len__(self) -> int:
        """How many rows."""
        return int(self.table.num_rows)

    def where(self, chosen: Bools) -> "MeterRows":
        """The chosen rows."""
        return self if chosen.all() else MeterRows(self.table.filter(pa.array(chosen)))

    def is_equal(self, field: str, value: str) -> Bools:
        """Where a field has this text."""
        found: Bools = _array(pc.equal(self.table[field], value).fill_null(False))
        return found

    def texts(self, field: str) -> tuple[str | None, ...]:
        """A field of text."""
        return tuple(self.table[field].to_pylist())

    def share(self, field: str) -> float | None:
        """The share of true values of a field that is true or false; None where no row has it."""
        found = pc.mean(self.table[field].cast(pa.float64())).as_py()
        return None if found is None else float(found)

    def seconds(self, field: str) -> Floats:
        """A field in nanoseconds, as seconds; NaN for null."""
        return _numbers(self.table[field]) * NS

    def counts(self, field: str) -> Ints:
        """A field of counts; -1 for null."""
        found: Ints = _array(self.table[field].fill_null(UNKNOWN))
        return found

    def server_times_ms(self) -> tuple[Floats, ...]:
        """The server's own times of each request, in the order of SERVER_TIMES_MS; NaN for null."""
        return tuple(_numbers(pc.struct_field(self.table["server_metrics"], [name])) for name in SERVER_TIMES_MS)


def read_rows(text: bytes, more: Iterable[str] = ()) -> MeterRows:
    """Parse requests.jsonl; `more` names fields that this report must have too.

    Raises ValueError for a line that is not JSON or a value of another type, KeyError for a missing field.
    """
    for field in (*_REQUIRED, *more) if text else ():
        if f'"{field}"'.encode() not in text:
            raise KeyError(field)
    return MeterRows(_table(text))


def _table(text: bytes) -> Any:
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=min(len(text) + 1, _BLOCK_MAX)),
            parse_options=pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore"),
        )
        if len(table) == lines:
            return table
    except pa.ArrowInvalid:
        pass
    # The error of a broken line is about that line.
    return pa.Table.from_pylist([json.loads(line) for line in text.splitlines()], schema=_SCHEMA)


def _numbers(column: Any) -> Floats:
    found: Floats = _array(column.cast(pa.float64(), safe=False))
    return found


def _array(column: Any) -> Any:
    return column.combine_chunks().to_numpy(zero_copy_only=False)
