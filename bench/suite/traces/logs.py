"""A trace out of a log of real requests, which keeps no text: an OpenTelemetry export, or the log of a gateway.

What two prompts have in common is found by hashing their beginnings, block by block; the hashes become numbers by first
appearance, and neither text nor hash is kept. A block is 512 tokens of about four bytes, since no tokenizer is used.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from bench.errors import SuiteError
from bench.suite.traces.mooncake import BLOCK_TOKENS
from bench.suite.traces.row import json_lines, seconds, tokens

LogKind = Literal["otel", "gateway"]
BYTES_PER_TOKEN = 4  # the usual guess for text without a tokenizer at hand
NS_PER_S = 1_000_000_000
LATEST_S = 1e11  # the year 5138: what is later counts a smaller unit than seconds
_INPUTS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUTS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_TEXTS = ("gen_ai.input.messages", "gen_ai.prompt")
_PLACES = ("request", "response", "body")  # of a gateway's log, beside the top of the line


@dataclass(frozen=True, slots=True)
class Logged:
    """One request of a log; `blocks` are hashes of its prompt's beginnings, as many as its text has whole blocks."""

    at_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[bytes, ...]


def read_otel(lines: Iterable[str], where: str) -> Iterator[Logged]:
    """The spans of an export in OTLP's JSON, one document in each line, that count input tokens (`gen_ai.usage.*`)."""
    for at, document in json_lines(lines, where):
        for span in _spans(document, at):
            found = _attributes(span)
            given = next((found[name] for name in _INPUTS if name in found), None)
            if given is not None:
                output = next((found[name] for name in _OUTPUTS if name in found), None)
                text = next((found[name] for name in _TEXTS if name in found), "")
                start_s = seconds(span.get("startTimeUnixNano"), "startTimeUnixNano", at, NS_PER_S)
                yield Logged(
                    start_s, tokens(given, _INPUTS[0], at), tokens(output, _OUTPUTS[0], at), _blocks(str(text))
                )


def _spans(document: Mapping[str, Any], at: str) -> Iterator[Mapping[str, Any]]:
    found: list[Any] = [document]
    for name in ("resourceSpans", "scopeSpans", "spans"):
        lists: list[Any] = [one.get(name) if isinstance(one, dict) else None for one in found]
        if not all(isinstance(one, list) for one in lists):
            raise SuiteError(
                f"{at}: not an export of spans in OTLP's JSON: {name} must be a list, in each of its places"
            )
        found = [one for inner in lists for one in inner]
    yield from (one for one in found if isinstance(one, dict))


def _attributes(span: Mapping[str, Any]) -> dict[str, object]:
    """The values of a span's attributes by their keys; what does not have that form counts nothing."""
    found = span.get("attributes")
    pairs = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return {str(one.get("key")): _value(one.get("value")) for one in pairs}


def _value(found: object) -> object:
    return next(iter(found.values()), None) if isinstance(found, dict) else None


def read_gateway(lines: Iterable[str], where: str) -> Iterator[Logged]:
    """A log in JSONL with a time, OpenAI's `usage`, and `messages`, `prompt` or `input`, at the top or in `request`."""
    for at, row in json_lines(lines, where):
        every = [row, *(row[name] for name in _PLACES if isinstance(row.get(name), dict))]
        usage = _first(every, "usage")
        if not isinstance(usage, dict):
            raise SuiteError(f"{at}: has no usage, which counts the tokens")
        input_tokens = tokens(usage.get("prompt_tokens", usage.get("input_tokens")), "usage.prompt_tokens", at)
        output = tokens(usage.get("completion_tokens", usage.get("output_tokens")), "usage.completion_tokens", at)
        text = _first(every, "messages", "prompt", "input")
        time = _first(every, "timestamp", "time", "created", "created_at", "startTime", "start_time")
        yield Logged(_time_s(time, at), input_tokens, output, _blocks("" if text is None else _text(text)))


def _first(places: Iterable[Mapping[str, Any]], *names: str) -> Any:
    return next((place[name] for name in names for place in places if place.get(name) is not None), None)


def _text(found: object) -> str:
    return found if isinstance(found, str) else json.dumps(found, sort_keys=True)


def _time_s(found: object, at: str) -> float:
    """Seconds of the Unix epoch, from a date in words or from the epoch's seconds, milli-, micro- or nanoseconds."""
    # "1712013012345" would be a date, too: of the year 1712.
    if isinstance(found, str) and not found.strip().replace(".", "", 1).isdigit():
        with suppress(ValueError):
            time = datetime.fromisoformat(found)
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    time_s = seconds(found, "the time", at)
    while time_s >= LATEST_S:
        time_s /= 1000
    return time_s


def _blocks(text: str) -> tuple[bytes, ...]:
    """A hash of each beginning of the text that is whole blocks long."""
    content, size = text.encode(errors="surrogatepass"), BLOCK_TOKENS * BYTES_PER_TOKEN
    running, found = hashlib.blake2b(digest_size=16), []
    for begin in range(0, len(content) - size + 1, size):
        running.update(content[begin : begin + size])
        found.append(running.digest())
    return tuple(found)


LOGS: Mapping[LogKind, Callable[[Iterable[str], str], Iterator[Logged]]] = {"otel": read_otel, "gateway": read_gateway}


def trace_lines(requests: Iterable[Logged]) -> Iterator[str]:
    """Lines of a trace in Mooncake's format, by time from the first request on."""
    ordered = sorted(requests, key=lambda one: one.at_s)
    fresh = count()
    numbers: defaultdict[bytes, int] = defaultdict(lambda: next(fresh))
    for one in ordered:
        needed = -(-one.input_tokens // BLOCK_TOKENS)
        shared = [numbers[block] for block in one.blocks[:needed]]
        own = [next(fresh) for _ in range(needed - len(shared))]  # of blocks that no other prompt has
        row = {"timestamp": round((one.at_s - ordered[0].at_s) * 1000), "input_length": one.input_tokens}
        yield json.dumps({**row, "output_length": one.output_tokens, "hash_ids": shared + own}) + "\n"
