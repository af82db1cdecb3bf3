"""The JSONL of the Mooncake traces (kvcache-ai/Mooncake), and aiperf's dialect of it with sessions.

Times are in milliseconds. `hash_ids` are of blocks of 512 tokens. aiperf adds `session_id`, and to the later turns of a
session `delay`, the pause before them; their `input_length` is what they add to the session.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench.suite.traces.row import TraceRow, block_ids, json_lines, seconds, tokens

BLOCK_TOKENS = 512
MS_PER_S = 1000


def read(lines: Iterable[str], where: str) -> Iterator[TraceRow]:
    """Its rows."""
    begun: set[str] = set()
    for at, row in json_lines(lines, where):
        session = None if row.get("session_id") is None else str(row["session_id"])
        is_later = session in begun
        if session is not None:
            begun.add(session)
        yield _row(row, at, session, is_later=is_later)


def _row(row: Mapping[str, Any], at: str, session: str | None, *, is_later: bool) -> TraceRow:
    length = tokens(row.get("input_length"), "input_length", at)
    found = row.get("hash_ids")
    return TraceRow(
        at,
        None if is_later else seconds(row.get("timestamp", 0), "timestamp", at, MS_PER_S),
        length,
        tokens(row.get("output_length"), "output_length", at),
        () if found is None else block_ids(found, "hash_ids", at, length, BLOCK_TOKENS),
        BLOCK_TOKENS,
        session,
        seconds(row.get("delay") or 0, "delay", at, MS_PER_S) if is_later else 0.0,
        adds_to_session=session is not None,
    )
