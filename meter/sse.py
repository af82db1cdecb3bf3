"""What came back, read after the clock has stopped: events, tokens, and the time of each."""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from meter.exchange import Exchange

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(slots=True)
class Answer:
    """One answer in parts; None is what was not there."""

    headers_at_ns: int | None = None
    body: bytes = b""
    token_reads: list[int] = field(default_factory=list)  # for each token event, the read that completed it
    event_tokens: list[int] = field(default_factory=list)
    text: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None  # an error object inside a 2xx answer
    unreadable: str | None = None  # the first event that is not what it should be
    is_done: bool = False  # [DONE] was seen

    @property
    def output_sha256(self) -> str | None:
        """Hash of the whole text; None when none came."""
        return hashlib.sha256(self.text.encode()).hexdigest() if self.text else None

    @property
    def cached_tokens(self) -> int | None:
        """How much of the prompt the server took from its prefix cache; None when it does not say."""
        details = (self.usage or {}).get("prompt_tokens_details")
        return _count(details, "cached_tokens")


def _count(counts: object, key: str) -> int | None:
    found = counts.get(key) if isinstance(counts, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def usage_count(answer: Answer, key: str) -> int | None:
    """Read one of the server's own counts; None when it did not give it."""
    return _count(answer.usage, key)


def split_events(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each event's data with the offset of its last byte; comments and an unfinished event are left out."""
    data: list[bytes] = []
    start = 0
    for line_end in _LINE_END.finditer(body):
        line = body[start : line_end.start()]
        start = line_end.end()
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield start - 1, b"\n".join(data)
            data = []


def read_answer(exchange: Exchange) -> Answer:
    """Settle and parse one answer; never raises, what cannot be read is noted in the answer."""
    answer = Answer()
    exchange.settle()
    framing = exchange.framing
    read_ends = list(accumulate(len(data) for _at, _ancillary, data in exchange.reads))
    if framing.head_end is None:
        return answer
    answer.headers_at_ns = exchange.reads[bisect_right(read_ends, framing.head_end - 1)][0]
    raw = b"".join(data for _at, _ancillary, data in exchange.reads)
    answer.body = b"".join(raw[start:end] for start, end in framing.segments)
    body_starts = list(accumulate((end - start for start, end in framing.segments), initial=0))[:-1]
    for position, data in split_events(answer.body):
        segment = bisect_right(body_starts, position) - 1
        raw_position = framing.segments[segment][0] + position - body_starts[segment]
        _take_event(answer, data, bisect_right(read_ends, raw_position))
    if not answer.is_done and not answer.token_reads:
        _take_plain_body(answer)
    return answer


def _take_plain_body(answer: Answer) -> None:
    """Look for an error object in a body that is no event stream."""
    try:
        whole = json.loads(answer.body)
    except ValueError:
        return
    if isinstance(whole, dict) and whole.get("error"):
        answer.error = _excerpt(answer.body)


def _take_event(answer: Answer, data: bytes, read: int) -> None:
    if data.strip() == b"[DONE]":
        answer.is_done = True
        return
    try:
        chunk = json.loads(data)
        if chunk.get("error"):
            answer.error = answer.error or _excerpt(data)
            return
        _take_chunk(answer, chunk, read)
    except (ValueError, AttributeError, TypeError, KeyError):
        answer.unreadable = answer.unreadable or _excerpt(data)


def _take_chunk(answer: Answer, chunk: dict[str, Any], read: int) -> None:
    if chunk.get("usage"):
        answer.usage = chunk["usage"]
    for choice in chunk["choices"]:
        text = choice.get("text") or ""
        token_ids = choice.get("token_ids")
        tokens = len(token_ids) if token_ids is not None else int(bool(text))
        answer.text += text
        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
        if tokens:
            answer.token_reads.append(read)
            answer.event_tokens.append(tokens)


def _excerpt(data: bytes) -> str:
    return data[:500].decode(errors="replace")


def body_excerpt(answer: Answer) -> str:
    """Quote the beginning of the body, for an error text."""
    return _excerpt(answer.body)
