"""Whether a request succeeded: every sign of success must be present, and a failure has one class."""

from typing import Any

from meter.exchange import Exchange
from meter.sse import Answer, body_excerpt, usage_count

OUTCOMES = (
    "ok",
    "connect",
    "send",
    "timeout",
    "http",
    "sse_error",
    "truncated",
    "parse",
    "short_output",
    "dropped_on_reuse",
    "cancelled",
)
_SUCCESS = range(200, 300)

Verdict = tuple[str, str | None]  # outcome, and for a failure its text


def judge(exchange: Exchange, answer: Answer, output_tokens: int, extra_body: dict[str, Any]) -> Verdict:
    """Name the outcome. An error that the server reports has precedence over how the connection ended."""
    status = exchange.framing.status
    if status is not None and status not in _SUCCESS:
        return "http", f"HTTP {status}: {body_excerpt(answer)}"
    if answer.error is not None:
        return "sse_error", f"HTTP {status}: {answer.error}"
    if exchange.failure is not None:
        return exchange.failure, _with_status(exchange)
    return _judge_stream(answer) or _judge_length(answer, output_tokens, extra_body) or ("ok", None)


def _with_status(exchange: Exchange) -> str | None:
    status = exchange.framing.status
    return exchange.failure_text if status is None else f"HTTP {status}: {exchange.failure_text}"


def _judge_stream(answer: Answer) -> Verdict | None:
    if answer.unreadable is not None:
        return "parse", f"not a completion chunk: {answer.unreadable}"
    if not answer.token_events and not answer.is_done:
        return "parse", f"no event stream: {body_excerpt(answer)}"
    if not answer.is_done or answer.finish_reason is None:
        return "truncated", "the stream ended without " + ("a finish_reason" if answer.is_done else "[DONE]")
    if usage_count(answer, "completion_tokens") is None:
        return "parse", "the stream ended without usage"
    return None


def _judge_length(answer: Answer, output_tokens: int, extra_body: dict[str, Any]) -> Verdict | None:
    counted = usage_count(answer, "completion_tokens")
    if extra_body.get("ignore_eos") and counted != output_tokens:
        return "short_output", f"{counted} tokens of {output_tokens}, finish_reason {answer.finish_reason}"
    return None
