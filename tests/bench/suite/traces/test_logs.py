"""A log of real requests becomes a trace that shares what its prompts shared, and has none of their text."""

import json
from typing import Any

import pytest

from bench.errors import SuiteError
from bench.suite.traces.formats import READERS
from bench.suite.traces.logs import LOGS, LogKind, trace_lines
from bench.suite.traces.window import Window, replayed

SYSTEM = "You answer in whole sentences, and secretly. " * 60  # 2700 bytes: one block of 2048


def gateway(at: str, text: str, tokens: int) -> dict[str, Any]:
    body = {"messages": [{"content": SYSTEM + text, "role": "user"}]}
    return {"time": at, "request": body, "response": {"usage": {"prompt_tokens": tokens, "completion_tokens": 9}}}


def span(start_s: int, text: str, tokens: int) -> dict[str, Any]:
    found = {"gen_ai.usage.input_tokens": {"intValue": str(tokens)}, "gen_ai.usage.output_tokens": {"intValue": "9"}}
    found["gen_ai.input.messages"] = {"stringValue": SYSTEM + text}
    attributes = [{"key": key, "value": value} for key, value in found.items()]
    own = {"startTimeUnixNano": str(start_s * 10**9), "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [own, {"name": "db", "attributes": []}]}]}]}


LOG = {
    "gateway": [gateway("2026-11-02T10:00:02Z", "Later.", 700), gateway("2026-11-02T10:00:00Z", "First?", 600)],
    "otel": [span(102, "Later.", 700), span(100, "First?", 600)],
}


@pytest.mark.parametrize("kind", ["gateway", "otel"])
def test_a_log_becomes_a_trace_in_order_of_time_without_its_text(kind: LogKind) -> None:
    lines = [*trace_lines(LOGS[kind]((json.dumps(row) for row in LOG[kind]), "log"))]

    assert [json.loads(line) for line in lines] == [
        {"timestamp": 0, "input_length": 600, "output_length": 9, "hash_ids": [0, 1]},
        {"timestamp": 2000, "input_length": 700, "output_length": 9, "hash_ids": [0, 2]},
    ]
    made = replayed(READERS["mooncake"](iter(lines), "trace"), "trace", Window(2, 1000, 10))
    assert [one.parts[0] for one in made] == [("block 0", 512)] * 2


@pytest.mark.parametrize(
    ("kind", "row", "said"),
    [
        ("gateway", {"time": 1}, "log:1: has no usage"),
        ("gateway", {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}, "log:1: the time must be a number"),
        ("gateway", {"time": 1, "usage": {"prompt_tokens": -5}}, "log:1: usage.prompt_tokens must be"),
        ("otel", {"spans": []}, "log:1: not an export of spans"),
        ("otel", {"resourceSpans": [3]}, "log:1: not an export of spans"),
        ("otel", {"resourceSpans": [{"scopeSpans": {}}]}, "log:1: not an export of spans"),
    ],
)
def test_what_is_not_such_a_log_is_refused_with_its_line(kind: LogKind, row: dict[str, Any], said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        list(LOGS[kind](iter([json.dumps(row)]), "log"))

    assert str(caught.value).startswith(said)


def test_a_span_of_another_form_counts_nothing() -> None:
    one = span(7, "One.", 600)
    one["resourceSpans"][0]["scopeSpans"][0]["spans"] += ["text", {"attributes": {}}, {"attributes": [3, {"key": []}]}]

    assert [found.at_s for found in LOGS["otel"](iter([json.dumps(one)]), "log")] == [7]


@pytest.mark.parametrize("per_s", [1, 10**3, 10**6, 10**9])
def test_a_time_of_a_gateway_is_in_seconds_or_a_smaller_unit(per_s: int) -> None:
    row = {"created": 1_795_000_000 * per_s, "usage": {"prompt_tokens": 5, "completion_tokens": 2}}

    assert [found.at_s for found in LOGS["gateway"](iter([json.dumps(row)]), "log")] == [1_795_000_000]


def test_milliseconds_as_text_are_no_date_of_the_year_1712() -> None:
    row = {"created": "1712013012345", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}

    assert [found.at_s for found in LOGS["gateway"](iter([json.dumps(row)]), "log")] == [1_712_013_012.345]


def test_a_prompt_that_was_cut_within_a_character_is_read() -> None:
    row = gateway("2026-11-02T10:00:02Z", "hi \ud83d", 700)

    assert [found.input_tokens for found in LOGS["gateway"](iter([json.dumps(row)]), "log")] == [700]
