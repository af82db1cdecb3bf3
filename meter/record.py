"""One request as the record tells it: times in nanoseconds since the origin, None for what is missing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from meter.clock import Offset, kernel_stamp_ns
from meter.exchange import Exchange
from meter.outcome import judge
from meter.plan import Plan
from meter.sse import Answer, read_answer, usage_count

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


def describe_all(exchanges: Iterable[Exchange], plan: Plan, origin: Origin) -> list[Row]:
    """Write the rows of all requests, each with the place of its events in events.bin."""
    rows = []
    first = 0
    for exchange in exchanges:
        row = describe(exchange, plan, origin)
        count = len(row["event_at_ns"])
        rows.append({**row, "event_first": first, "event_count": count})
        first += count
    return rows


def describe(exchange: Exchange, plan: Plan, origin: Origin) -> Row:
    """Write one row of requests.jsonl; the keys are documented in docs/reference/meter.md."""
    answer = read_answer(exchange)
    outcome, error = judge(exchange, answer, exchange.request.prompt.output_tokens, plan.extra_body)
    return {
        **_identity(exchange),
        **_times(exchange, answer, origin),
        **_counts(exchange, answer),
        **_events(exchange, answer, origin),
        "finish_reason": answer.finish_reason,
        "http_status": exchange.framing.status,
        "outcome": outcome,
        "error": error,
        "body_sha256": exchange.request.body_sha256,
        "output_sha256": answer.output_sha256,
    }


def _identity(exchange: Exchange) -> Row:
    return {
        "index": exchange.request.index,
        "phase": exchange.request.phase,
        "request_id": exchange.request.request_id,
        "prompt_id": exchange.request.prompt.prompt_id,
        "conversation": exchange.request.prompt.conversation,
        "turn": exchange.request.prompt.turn,
        "connection": exchange.connection,
        "reused": exchange.is_reused,
    }


def _times(exchange: Exchange, answer: Answer, origin: Origin) -> Row:
    tokens_at = [exchange.reads[read][0] for read in answer.token_reads]
    return {
        "intended_at_ns": origin.since(exchange.intended_ns),
        "send_start_ns": origin.since(exchange.send_start_ns),
        "send_end_ns": origin.since(exchange.send_end_ns),
        "headers_at_ns": origin.since(answer.headers_at_ns),
        "first_token_at_ns": origin.since(tokens_at[0] if tokens_at else None),
        "last_token_at_ns": origin.since(tokens_at[-1] if tokens_at else None),
        "done_at_ns": origin.since(exchange.ended_ns),
    }


def _counts(exchange: Exchange, answer: Answer) -> Row:
    prompt = exchange.request.prompt
    return {
        "prompt_tokens_planned": prompt.tokens,
        "prompt_tokens_counted": usage_count(answer, "prompt_tokens"),
        "cached_tokens_planned": prompt.cached_tokens,
        "cached_tokens": answer.cached_tokens,
        "output_tokens_planned": prompt.output_tokens,
        "output_tokens_counted": usage_count(answer, "completion_tokens"),
    }


def _events(exchange: Exchange, answer: Answer, origin: Origin) -> Row:
    kernel = [origin.kernel_since(kernel_stamp_ns(exchange.reads[read][1])) for read in answer.token_reads]
    sharing = Counter(answer.token_reads)
    return {
        "event_at_ns": [origin.since(exchange.reads[read][0]) for read in answer.token_reads],
        "event_kernel_ns": kernel if any(at is not None for at in kernel) else None,
        "event_tokens": answer.event_tokens,
        "merged_events": sum(count for count in sharing.values() if count > 1),
    }
