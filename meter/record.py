"""Requests as written to the record: times in nanoseconds since the origin, None for missing values."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from meter.api_key import hide
from meter.clock import Offset, kernel_stamp_ns
from meter.embeddings import is_usable
from meter.events import KINDS, NO_TIME, Events
from meter.exchange import Exchange
from meter.head import between, retry_after_s
from meter.outcome import judge
from meter.percentiles import nearest_rank
from meter.plan import Plan
from meter.prompts import Prompt
from meter.sse import Answer, Event, read_answer, usage_count
from meter.turns import LATE_NS, Turns
from meter.validity import is_valid

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """What times are counted from, and how kernel stamps become such times."""

    monotonic_ns: int
    offset: Offset | None  # None when the wall clock stepped: no kernel stamp can be placed

    def since(self, at_ns: int | None) -> int | None:
        """Nanoseconds since the origin."""
        return None if at_ns is None else at_ns - self.monotonic_ns

    def kernel_since(self, real_ns: int | None) -> int | None:
        """Nanoseconds since the origin of a kernel stamp, which is wall time."""
        if real_ns is None or self.offset is None:
            return None
        return self.since(real_ns - self.offset.real_minus_mono_ns)


@dataclass(slots=True)
class Part:
    """Some requests of a run, read: their rows, their events row after row, and how late their reads were."""

    rows: list[Row] = field(default_factory=list)
    events: Events = field(default_factory=Events)
    lags_ns: "array[int]" = field(default_factory=lambda: array("q"))  # kernel to us, of each read with a stamp
    reads: int = 0
    token_events: int = 0
    merged_late: int = 0  # token events without a time of their own, because the loop was busy
    between: Counter[str] = field(default_factory=Counter)  # answers with each header of a proxy or a cache
    tls: dict[str, str | None] | None = None  # of the first connection

    def first(self, count: int) -> "Part":
        """A copy with the rows and events of the first requests only; totals stay."""
        fewer = replace(self, rows=self.rows[:count], events=Events())
        fewer.events.take(self.events, 0, sum(row["event_count"] for row in fewer.rows))
        return fewer


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads answers of one worker after its clock has stopped."""

    plan: Plan
    origin: Origin
    worker: int
    turns: Turns
    key: str | None = None  # the API key, which no row has

    def read(self, exchanges: Iterable[Exchange]) -> Part:
        """Read these answers; each row holds the range of its events in the part."""
        part = Part()
        for exchange in exchanges:
            self._describe(exchange, part)
        return part

    def _describe(self, exchange: Exchange, part: Part) -> None:
        """Write one row of requests.jsonl; the keys are documented in docs/reference/meter.md."""
        answer = read_answer(exchange, self.key)
        counts = _counts(exchange, answer, self.plan.cache_block_tokens)
        if self.plan.is_embedding:
            dimensions = None if answer.vector is None else len(answer.vector)
            counts |= {"output_tokens_planned": None, "output_tokens_counted": None, "dimensions": dimensions}
        outcome, error = judge(exchange, answer, counts["output_tokens_planned"], self.plan.extra_body)
        stamps = [self.origin.kernel_since(kernel_stamp_ns(ancillary)) for _at, ancillary, _data in exchange.reads]
        row = {
            **self._identity(exchange, answer),
            **self._times(exchange, answer),
            **counts,
            **self._lateness(exchange, answer, stamps, part),
            "finish_reason": answer.finish_reason,
            "stop_reason": answer.stop_reason,
            "http_status": exchange.framing.status,
            "outcome": outcome,
            "error": None if error is None else hide(error, self.key),
            "retry_after_s": retry_after_s(answer.head),
            "body_sha256": exchange.request.body_sha256,
            "output_sha256": answer.output_sha256,
            "cancel_after_ns": exchange.cancel_after_ns,
            "answer_is_valid": self._is_valid(answer, outcome),
            "server_metrics": answer.server_metrics,
            "event_first": len(part.events),
            "event_count": len(answer.events),
        }
        for event in answer.events:
            seen = exchange.reads[event.read][0] - self.origin.monotonic_ns
            stamp = stamps[event.read]
            kind = KINDS.index(event.kind)
            part.events.append(seen, NO_TIME if stamp is None else stamp, event.tokens, event.read, event.size, kind)
        part.rows.append(row)
        part.between.update(f"{name}: {value}" for name, value in between(answer.head).items())
        if part.tls is None and exchange.connection is not None and exchange.connection.tls is not None:
            part.tls = exchange.connection.tls.describe()

    def _is_valid(self, answer: Answer, outcome: str) -> bool | None:
        """Whether a complete answer has the form that the plan demands; None where it demands none.

        A vector must have a direction.
        """
        if answer.vector is not None and outcome == "ok":
            return is_usable(answer.vector)
        return is_valid(answer, self.plan.answers) if self.plan.answers and outcome == "ok" else None

    def _identity(self, exchange: Exchange, answer: Answer) -> Row:
        connection = exchange.connection
        return {
            "index": exchange.request.index,
            "phase": exchange.request.phase,
            "request_id": exchange.request.request_id,
            "server_request_id": answer.response_id,
            "model": exchange.request.model,
            "prompt_id": exchange.request.prompt.prompt_id,
            "conversation": exchange.request.prompt.conversation,
            "turn": exchange.request.prompt.turn,
            "worker": self.worker,
            "connection": None if connection is None else connection.number,
            "local_port": None if connection is None else connection.port,
            "address": None if connection is None else connection.address,
            "reused": exchange.is_reused,
        }

    def _times(self, exchange: Exchange, answer: Answer) -> Row:
        opened = None if exchange.is_reused else exchange.connection
        tokens = answer.token_events
        answers = [event for event in tokens if event.kind != "reasoning"]
        moments = {
            "intended_at_ns": exchange.intended_ns,
            "slot_free_ns": exchange.slot_free_ns,
            "connect_start_ns": None if opened is None else opened.opened_ns,
            "connect_end_ns": None if opened is None else opened.connected_ns,
            "send_start_ns": exchange.send_start_ns,
            "send_end_ns": exchange.send_end_ns,
            "headers_at_ns": answer.headers_at_ns,
            "first_event_at_ns": _seen(exchange, answer.events[:1]),
            "first_token_at_ns": _seen(exchange, tokens[:1]),
            "first_content_at_ns": _seen(exchange, answers[:1]),
            "last_token_at_ns": _seen(exchange, tokens[-1:]),
            "done_at_ns": exchange.ended_ns,
        }
        return {name: self.origin.since(at_ns) for name, at_ns in moments.items()}

    def _lateness(self, exchange: Exchange, answer: Answer, stamps: Sequence[int | None], part: Part) -> Row:
        """Return how late this answer was read, and count it for the part."""
        lags = [
            at - self.origin.monotonic_ns - stamp
            for (at, _ancillary, _data), stamp in zip(exchange.reads, stamps, strict=True)
            if stamp is not None
        ]
        sharing = {
            read: count for read, count in Counter(event.read for event in answer.token_events).items() if count > 1
        }
        late = sum(
            count for read, count in sharing.items() if self.turns.most_late_ns(exchange.reads[read][0]) > LATE_NS
        )
        part.lags_ns.extend(lags)
        part.reads += len(exchange.reads)
        part.token_events += len(answer.token_events)
        part.merged_late += late
        return {
            "lag_p99_ns": nearest_rank(lags, 0.99),
            "lag_max_ns": max(lags, default=None),
            "merged_events": sum(sharing.values()),
            "merged_late_events": late,
        }


def _seen(exchange: Exchange, events: Sequence[Event]) -> int | None:
    return exchange.reads[events[0].read][0] if events else None


def _counts(exchange: Exchange, answer: Answer, block_tokens: int | None) -> Row:
    prompt = exchange.request.prompt
    return {
        "prompt_tokens_planned": prompt.tokens,
        "prompt_tokens_counted": usage_count(answer, "prompt_tokens"),
        "cached_tokens_planned": findable(prompt, block_tokens),
        "cached_tokens": answer.cached_tokens,
        "output_tokens_planned": prompt.output_tokens,
        "output_tokens_counted": usage_count(answer, "completion_tokens"),
        "tokens_by": answer.tokens_by,
    }


def findable(prompt: Prompt, block_tokens: int | None) -> int | None:
    """How many tokens of a prompt a prefix cache can have: whole blocks, and never the last token.

    The last one is always computed, for its logits. Without a known block any number of tokens is whole.
    """
    if prompt.cached_tokens is None or block_tokens is None or prompt.tokens is None:
        return prompt.cached_tokens
    return min(prompt.cached_tokens, prompt.tokens - 1) // block_tokens * block_tokens


def merge(parts: Sequence[Part]) -> Part:
    """Put the parts of all workers together, in the order of the requests; nothing is lost or counted twice."""
    whole = Part()
    rows = sorted(((row, part) for part in parts for row in part.rows), key=lambda pair: pair[0]["index"])
    for row, part in rows:
        first, count = row["event_first"], row["event_count"]
        whole.rows.append({**row, "event_first": len(whole.events)})
        whole.events.take(part.events, first, count)
    for part in parts:
        whole.lags_ns.extend(part.lags_ns)
        whole.reads += part.reads
        whole.token_events += part.token_events
        whole.merged_late += part.merged_late
        whole.between.update(part.between)
        whole.tls = whole.tls or part.tls
    return whole
