"""The Weka agent format, as aiperf's `weka_trace`: one session in each line, with its turns and those of sub-agents.

A session has `id`, `block_size`, `hash_id_scope` and `requests`, each with `t` (seconds), `in`, `out`, `hash_ids`,
`think_time` and `api_time`. A prompt is whole: it has all earlier turns. A sub-agent is an entry of type `subagent`
with `requests` of its own; it runs as a session of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench.errors import SuiteError
from bench.suite.traces.row import TraceRow, block_ids, json_lines, seconds, tokens

BLOCK_TOKENS = 64


def read(lines: Iterable[str], where: str) -> Iterator[TraceRow]:
    """Its rows, session after session."""
    for at, row in json_lines(lines, where):
        scope = f"{row.get('id')}/" if row.get("hash_id_scope", "local") == "local" else ""
        block_tokens = tokens(row.get("block_size", BLOCK_TOKENS), "block_size", at)
        yield from _session(row, at, str(row.get("id")), scope, block_tokens)


def _session(row: Mapping[str, Any], at: str, session: str, scope: str, block_tokens: int) -> Iterator[TraceRow]:
    """The turns of a session, then those of its sub-agents."""
    entries = row.get("requests")
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise SuiteError(f"{at}: requests must be a list of objects")
    answered_s: float | None = None
    for entry in entries:
        if entry.get("type") == "subagent":
            continue
        t_s = seconds(entry.get("t"), "t", at)
        length = tokens(entry.get("in"), "in", at)
        ids = block_ids(entry.get("hash_ids"), "hash_ids", at, length, block_tokens)
        yield TraceRow(
            at,
            0.0 if answered_s is None else None,  # its times count from its own begin
            length,
            tokens(entry.get("out"), "out", at),
            tuple(scope + one for one in ids),
            block_tokens,
            session,
            0.0 if answered_s is None else _pause_s(entry, t_s, answered_s, at),
        )
        answered_s = t_s + seconds(entry.get("api_time") or 0, "api_time", at)
    for place, entry in enumerate(entries):
        if entry.get("type") == "subagent":
            yield from _session(entry, at, f"{session}/{entry.get('agent_id', place)}", scope, block_tokens)


def _pause_s(entry: Mapping[str, Any], t_s: float, answered_s: float, at: str) -> float:
    """The time between the answer before and this turn: as recorded, else by the times of both."""
    if entry.get("think_time") is not None:
        return seconds(entry["think_time"], "think_time", at)
    return max(t_s - answered_s, 0.0)
