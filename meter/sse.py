"""Answers parsed after the load: events, tokens, and the time of each."""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from meter.api_key import hide_bytes
from meter.embeddings import KIND as EMBEDDING
from meter.embeddings import vector_of
from meter.exchange import Exchange
from meter.head import read_head

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: what it is (events.KINDS), its tokens, the read that completed it, its size in bytes."""

    kind: str
    tokens: int
    read: int
    size: int


@dataclass(slots=True)
class Answer:
    """One answer in parts; None for what was missing."""

    headers_at_ns: int | None = None
    head: dict[str, str] = field(default_factory=dict)  # its headers, by names in lower case
    body: bytes = b""
    events: list[Event] = field(default_factory=list)
    tokens_by: str | None = None  # how tokens were counted: "ids", "usage" (running counts), or "events" (one an event)
    text: str = ""  # of every channel
    tool_name: str | None = None  # of the first tool that it calls
    tool_arguments: str = ""
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    usage: dict[str, Any] | None = None
    server_metrics: dict[str, Any] | None = None  # the server's own times of this request
    response_id: str | None = None
    error: str | None = None  # an error object inside a 2xx answer
    unreadable: str | None = None  # the first event that cannot be parsed
    is_done: bool = False  # [DONE] was seen
    vector: list[Any] | None = None  # of an embedding

    @property
    def token_events(self) -> list[Event]:
        """The events with tokens, of any channel."""
        return [event for event in self.events if event.tokens]

    @property
    def output_sha256(self) -> str | None:
        """Hash of the whole text; None without text."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest() if self.text else None

    @property
    def cached_tokens(self) -> int | None:
        """How much of the prompt the server took from its prefix cache; None if it does not report it."""
        details = (self.usage or {}).get("prompt_tokens_details")
        return _count(details, "cached_tokens")


def _count(counts: object, key: str) -> int | None:
    found = counts.get(key) if isinstance(counts, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def usage_count(answer: Answer, key: str) -> int | None:
    """Read one of the server's own counts; None if it did not report it."""
    return _count(answer.usage, key)


def split_events(body: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield each event's data with the offset of its last byte, and each comment as None; no unfinished event."""
    data: list[bytes] = []
    start = 0
    for line_end in _LINE_END.finditer(body):
        line = body[start : line_end.start()]
        start = line_end.end()
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b":"):
            yield start - 1, None
        elif not line and data:
            yield start - 1, b"\n".join(data)
            data = []


def read_answer(exchange: Exchange, key: str | None = None) -> Answer:
    """Parse one answer, without the API key; never raises: what cannot be parsed is recorded in the answer."""
    answer = Answer()
    exchange.settle()
    framing = exchange.framing
    read_ends = list(accumulate(len(data) for _at, _ancillary, data in exchange.reads))
    if framing.head_end is None:
        return answer
    answer.headers_at_ns = exchange.reads[bisect_right(read_ends, framing.head_end - 1)][0]
    raw = b"".join(data for _at, _ancillary, data in exchange.reads)
    answer.head = read_head(raw[: framing.head_end])
    answer.body = hide_bytes(b"".join(raw[start:end] for start, end in framing.segments), key)
    body_starts = list(accumulate((end - start for start, end in framing.segments), initial=0))[:-1]
    for position, data in split_events(answer.body):
        segment = bisect_right(body_starts, position) - 1
        raw_position = framing.segments[segment][0] + position - body_starts[segment]
        kind, tokens = ("comment", 0) if data is None else _take_event(answer, data)
        answer.events.append(Event(kind, tokens, bisect_right(read_ends, raw_position), len(data or b"")))
    if not answer.is_done and not answer.token_events:
        _take_plain_body(answer, len(exchange.reads) - 1)
    return answer


def _take_plain_body(answer: Answer, last_read: int) -> None:
    """Find an error object or an embedding in a body that is not an event stream."""
    try:
        whole = json.loads(answer.body)
    except (ValueError, RecursionError):
        return
    if not isinstance(whole, dict):
        return
    if whole.get("error"):
        answer.error = _excerpt(answer.body)
    answer.vector = vector_of(whole)
    if answer.vector is not None:
        answer.usage, answer.response_id = _of_kind(dict, whole.get("usage")), _of_kind(str, whole.get("id"))
        answer.events.append(Event(EMBEDDING, 0, last_read, len(answer.body)))


def _take_event(answer: Answer, data: bytes) -> tuple[str, int]:
    """Add one event; return its kind and its tokens."""
    if data.strip() == b"[DONE]":
        answer.is_done = True
        return "done", 0
    try:
        chunk = json.loads(data)
        if chunk.get("error"):
            answer.error = answer.error or _excerpt(data)
            return "error", 0
        return _take_chunk(answer, chunk)
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        answer.unreadable = answer.unreadable or _excerpt(data)
        return "error", 0


def _take_chunk(answer: Answer, chunk: dict[str, Any]) -> tuple[str, int]:
    choices = chunk["choices"]
    counted = _count(answer.usage, "completion_tokens")
    answer.response_id = answer.response_id or _of_kind(str, chunk.get("id"))
    answer.server_metrics = _of_kind(dict, chunk.get("metrics")) or answer.server_metrics
    answer.usage = _of_kind(dict, chunk.get("usage")) or answer.usage
    if not choices:
        return "usage", 0
    said = [_take_choice(answer, choice) for choice in choices]
    kind, tokens = said[0][0], sum(more for _kind, more in said)
    # llama.cpp's last chunk has the whole count, an empty text and a finish reason: it is not a running count.
    if answer.tokens_by == "events" and chunk.get("usage") and tokens:
        answer.tokens_by = "usage"
    if answer.tokens_by == "usage":
        if counted is None:  # the first count is of all tokens until now
            counted = sum(event.tokens for event in answer.events)
        tokens = max((_count(answer.usage, "completion_tokens") or 0) - counted, 0)
    return kind, tokens


def _take_choice(answer: Answer, choice: dict[str, Any]) -> tuple[str, int]:
    """Add the content of one choice; completions have it in the choice, chats in its delta."""
    said = choice.get("delta", choice)
    text, thought = (
        said.get("text") or said.get("content") or "",
        said.get("reasoning") or said.get("reasoning_content"),
    )
    is_token = bool(text or thought or said.get("tool_calls"))
    answer.text += (thought or "") + text
    for call in said.get("tool_calls") or ():
        answer.tool_name = answer.tool_name or call["function"].get("name")
        answer.tool_arguments += call["function"].get("arguments") or ""
    answer.finish_reason = _of_kind(str, choice.get("finish_reason")) or answer.finish_reason
    answer.stop_reason = _of_kind((str, int), choice.get("stop_reason")) or answer.stop_reason
    token_ids = choice.get("token_ids")
    if token_ids is not None:
        answer.tokens_by = "ids"
    elif is_token:
        answer.tokens_by = answer.tokens_by or "events"
    return _kind(said, text, thought, choice), len(token_ids) if token_ids is not None else int(is_token)


def _of_kind(kind: type | tuple[type, ...], value: Any) -> Any:
    """A value of the kind that the interface has there; None for any other. A lone surrogate becomes a `?`."""
    if isinstance(value, str):
        value = value.encode(errors="replace").decode()
    return value if isinstance(value, kind) else None


def _kind(said: dict[str, Any], text: str, thought: str | None, choice: dict[str, Any]) -> str:
    if not text:
        marks = {"reasoning": thought, "tool": said.get("tool_calls"), "finish": choice.get("finish_reason")}
        marks |= {"role": said.get("role") and not choice.get("token_ids")}
        return next((kind for kind, mark in marks.items() if mark), "content")
    return "content"


def _excerpt(data: bytes) -> str:
    return data[:500].decode(errors="replace")


def body_excerpt(answer: Answer) -> str:
    """Quote the beginning of the body, for an error text."""
    return _excerpt(answer.body)
