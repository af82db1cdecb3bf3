"""Read the meter's events.bin: one value per token event and column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.errors import UnreadableResultError
from bench.metrics import Bools, Ints

NO_STAMP_NS = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Events:
    """The token events of some requests: columns with one value per event, in the order of the requests.

    `at`, of length requests + 1, is where the events of each request start. `kernel_ns` is None unless every event has
    a time stamp of the kernel. The client's own reading is later, by as long as the client was busy, so a gap between a
    kernel stamp and a reading would mean nothing.
    """

    at: Ints
    user_ns: Ints
    kernel_ns: Ints | None
    tokens: Ints
    first: dict[int, int]  # place in `at` by the request's index

    @property
    def best_ns(self) -> Ints:
        """The kernel's time stamps if every event has one, else the times at which the client read the events."""
        return self.user_ns if self.kernel_ns is None else self.kernel_ns

    def of(self, index: Sequence[int]) -> "Events":
        """Return only the events of the requests with these indices, in their order."""
        places = np.array([self.first[each] for each in index], dtype=np.int64)
        count = np.diff(self.at)[places]
        at = np.concatenate(([0], np.cumsum(count)))
        chosen: Ints | slice
        if len(places) and (np.diff(places) == 1).all():  # as the rows of one phase nearly always are
            chosen = slice(self.at[places[0]], self.at[places[-1] + 1])
        else:
            chosen = np.repeat(self.at[:-1][places] - at[:-1], count) + np.arange(at[-1])
        return Events(
            at=at,
            user_ns=self.user_ns[chosen],
            kernel_ns=None if self.kernel_ns is None else self.kernel_ns[chosen],
            tokens=self.tokens[chosen],
            first={each: place for place, each in enumerate(index)},
        )


def read_events(
    head: dict[str, Any],
    index: Sequence[int],
    event_first: Sequence[int],
    event_count: Sequence[int],
    events: bytes,
    kind: str | None = None,
) -> Events:
    """Return the token events of a report: of `meter.json`, three fields of all its rows, and events.bin.

    With a `kind`, the events of that kind take their place, and each counts as one.

    Raises UnreadableResultError if the file and the rows differ in the number of events.
    """
    columns = _event_columns(head, events)
    first = np.array(event_first, dtype=np.int64)
    count = np.array(event_count, dtype=np.int64)
    if kind is not None:
        columns["event_tokens"] = (columns["event_kind"] == head["events"]["kinds"].index(kind)).astype(np.int64)
    found = len(columns["event_tokens"])
    if count.sum() != found or not np.array_equal(first, np.cumsum(count) - count):
        raise UnreadableResultError(f"events.bin holds {found} events, but requests.jsonl lists {count.sum()}")
    has_tokens = columns["event_tokens"] > 0
    chosen: Bools | slice = slice(None) if has_tokens.all() else has_tokens
    kernel_ns = columns["event_kernel_ns"][chosen]
    before = np.concatenate(([0], np.cumsum(has_tokens, dtype=np.int64)))
    return Events(
        at=np.concatenate((before[first], before[-1:])),
        user_ns=columns["event_at_ns"][chosen],
        kernel_ns=None if (kernel_ns == NO_STAMP_NS).any() else kernel_ns,
        tokens=columns["event_tokens"][chosen].astype(np.int64),
        first={each: place for place, each in enumerate(index)},
    )


# Records of version 1 have no header for events, and only events with tokens.
_V1_COLUMNS = [["event_at_ns", "<i8"], ["event_kernel_ns", "<i8"], ["event_tokens", "<i4"]]


def _event_columns(head: dict[str, Any], events: bytes) -> dict[str, Ints]:
    header = head.get("events") or {"columns": _V1_COLUMNS}
    types = [(name, np.dtype(kind)) for name, kind in header["columns"]]
    width = sum(kind.itemsize for _name, kind in types)
    count = header.get("count", len(events) // width)
    if len(events) != count * width:
        raise UnreadableResultError(f"events.bin holds {len(events)} bytes, not {count} events of {width} bytes")
    starts = np.cumsum([0, *(count * kind.itemsize for _name, kind in types)])
    return {
        name: np.frombuffer(events, dtype=kind, count=count, offset=int(start))
        for (name, kind), start in zip(types, starts, strict=False)
    }
