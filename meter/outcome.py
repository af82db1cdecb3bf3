"""Whether a request succeeded: every sign of success must be present, and a failure has one class."""

from typing import Any

from meter.exchange import Exchange
from meter.head import retry_after_s
from meter.sse import Answer, body_excerpt, usage_count

_SUCCESS = range(200, 300)
_REDIRECT = range(300, 400)
RATE_LIMITED = 429
# What a status means to whoever reads it first.
_PLAIN = {
    401: "the API key is missing or not accepted",
    403: "the API key may not do this",
    404: "no such model or path",
}

Verdict = tuple[str, str | None]  # outcome, and for a failure its text


def judge(exchange: Exchange, answer: Answer, output_tokens: int | None, extra_body: dict[str, Any]) -> Verdict:
    """Name the outcome. An error that the server reports has precedence over how the connection ended.

    `output_tokens` is None where an embedding is requested.
    """
    status = exchange.framing.status
    if status is not None and status not in _SUCCESS:
        return _judge_status(status, answer)
    if answer.error is not None:
        return "sse_error", f"HTTP {status}: {answer.error}"
    if exchange.failure is not None:
        return exchange.failure, _with_status(exchange)
    if output_tokens is None:
        return _judge_embedding(answer) or ("ok", None)
    return _judge_stream(answer) or _judge_length(answer, output_tokens, extra_body) or ("ok", None)


def _judge_status(status: int, answer: Answer) -> Verdict:
    said = body_excerpt(answer)
    if status == RATE_LIMITED:
        wait_s = retry_after_s(answer.head)
        return "rate_limited", f"HTTP {status}, retry after {'?' if wait_s is None else f'{wait_s:g}'} s: {said}"
    if status in _REDIRECT:
        return "http", f"HTTP {status}: a redirect to {answer.head.get('location')}, which the meter does not follow"
    plain = f" ({_PLAIN[status]})" if status in _PLAIN else ""
    return "http", f"HTTP {status}{plain}: {said}"


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


def _judge_embedding(answer: Answer) -> Verdict | None:
    if answer.vector is None:
        return "parse", f"no embedding: {body_excerpt(answer)}"
    if usage_count(answer, "prompt_tokens") is None:
        return "parse", "the answer has no usage"
    return None


def _judge_length(answer: Answer, output_tokens: int, extra_body: dict[str, Any]) -> Verdict | None:
    counted = usage_count(answer, "completion_tokens")
    if extra_body.get("ignore_eos") and counted != output_tokens:
        return "short_output", f"{counted} tokens of {output_tokens}, finish_reason {answer.finish_reason}"
    return None
