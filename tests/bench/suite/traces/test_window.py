"""Which part of a trace is replayed, and what is refused with its line."""

import pytest

from bench.errors import SuiteError
from bench.suite.traces.formats import READERS, TraceFormat
from bench.suite.traces.window import Replayed, Window, replayed


def replay(text: str, window: Window, kind: TraceFormat = "arrivals") -> tuple[Replayed, ...]:
    return replayed(READERS[kind](iter(text.splitlines(keepends=True)), "trace"), "trace", window)


@pytest.mark.parametrize(
    "text",
    [
        "arrival_s\n0.5\n0.75\n2\n",
        "id,arrival_s,tokens\na,0.5,3\nb,0.75,3\nc,2,3\nd,9,3\n",
        '{"arrival_s": 0.5}\n\n{"arrival_s": 0.75, "tokens": 3}\n{"arrival_s": 2}\n',
    ],
)
def test_arrivals_are_counted_from_the_first_and_only_as_many_as_are_asked(text: str) -> None:
    made = replay(text, Window(3, 32, 8))

    assert [one.at_s for one in made] == [0.0, 0.25, 1.5]
    assert [(one.input_tokens, one.output_tokens) for one in made] == [(32, 8)] * 3
    assert len({one.parts for one in made}) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arrival\n1\n", "trace:1: the column arrival_s is missing"),
        ("", "trace:1: the column arrival_s is missing"),
        ("arrival_s\n1\nsoon\n", "trace:3: arrival_s must be a number of seconds, at least 0, not 'soon'"),
        ("arrival_s\n-1\n", "trace:2: arrival_s must be"),
        ('{"arrival_s": ' + "9" * 400 + "}\n", "trace:1: arrival_s must be"),
        ('arrival_s,prompt\n1,"' + "long " * 30_000 + '"\n', "trace:1: the row cannot be read: field larger than"),
        ("arrival_s\nnan\n", "trace:2: arrival_s must be"),
        ("arrival_s\n2\n1\n", "trace:3: 1 s is before the previous arrival at 2 s"),
        ("arrival_s\n1\n2\n", "trace: has 2 arrivals, but the scenario sends 3 requests, warm-up included"),
        ('{"arrival_s": 1}\n{"arrival_s": true}\n', "trace:2: arrival_s must be"),
        ('{"arrival_s": 1}\n{oops\n', "trace:2: not JSON"),
        ('{"arrival_s": 1}\n' + '{"requests":[' * 100_000, "trace:2: not JSON: the JSON is nested too deeply"),
        ('{"arrival_s": 1}\n[2]\n', "trace:2: must be a JSON object, not [2]"),
    ],
)
def test_what_is_no_trace_is_said_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        replay(text, Window(3, 32, 8))

    assert str(caught.value).startswith(said)


AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,374,44
2023-11-16 18:17:04.0319600,396,109
2024-05-10 00:00:00.009930+00:00,879,55
"""
MOONCAKE = """\
{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 8]}
{"timestamp": 2000, "input_length": 1024, "output_length": 6, "hash_ids": [7, 8]}
{"timestamp": 3000, "input_length": 600, "output_length": 7, "hash_ids": [7, 9]}
{"timestamp": 3000, "input_length": 40, "output_length": 8}
"""
SESSIONS = """\
{"session_id": "a", "timestamp": 0, "input_length": 100, "output_length": 5}
{"session_id": "b", "timestamp": 500, "input_length": 90, "output_length": 4}
{"session_id": "a", "delay": 1500, "input_length": 10, "output_length": 6}
{"session_id": "b", "delay": 0, "input_length": 20, "output_length": 7}
"""
WEKA = """\
{"id": "s1", "block_size": 64, "hash_id_scope": "local", "requests": [\
{"t": 3.0, "type": "s", "in": 100, "out": 9, "hash_ids": [1, 2], "api_time": 1.5}, \
{"t": 6.0, "type": "subagent", "agent_id": "helper", "requests": [\
{"t": 6.5, "type": "n", "in": 64, "out": 3, "hash_ids": [1]}]}, \
{"t": 9.0, "type": "s", "in": 160, "out": 8, "hash_ids": [1, 2, 3], "think_time": 0.25}]}
{"id": "s2", "block_size": 64, "hash_id_scope": "local", "requests": [\
{"t": 0.0, "type": "s", "in": 60, "out": 7, "hash_ids": [1]}]}
"""
LONG = Window(3, 2048, 128)


def test_an_azure_trace_has_times_and_lengths_and_no_shared_part() -> None:
    made = replay(AZURE, LONG, "azure")

    assert [one.at_s for one in made[:2]] == pytest.approx([0.0, 0.052])
    assert [(one.input_tokens, one.output_tokens) for one in made] == [(374, 44), (396, 109), (879, 55)]
    assert len({part for one in made for part in one.parts}) == 3


def test_equal_hashes_are_equal_parts_and_the_last_block_is_as_long_as_the_prompt_leaves() -> None:
    made = replay(MOONCAKE, Window(4, 2048, 128), "mooncake")

    assert [one.parts for one in made[:3]] == [
        (("block 7", 512), ("block 8", 488)),
        (("block 7", 512), ("block 8", 512)),
        (("block 7", 512), ("block 9", 88)),
    ]
    assert [one.input_tokens for one in made] == [1000, 1024, 600, 40]


def test_a_window_begins_later_and_runs_faster() -> None:
    made = replay(MOONCAKE, Window(2, 2048, 128, from_s=1.5, speed=4.0), "mooncake")

    assert [(one.at_s, one.input_tokens) for one in made] == [(0.0, 1024), (0.25, 600)]


@pytest.mark.parametrize("name", ["a", ""])
def test_turns_of_a_session_are_side_by_side_and_hold_what_came_before(name: str) -> None:
    made = replay(SESSIONS.replace('"a"', f'"{name}"'), Window(4, 2048, 128, speed=2.0), "aiperf")

    assert [(one.session, one.turn, one.at_s, one.pause_s) for one in made] == [
        (0, 0, 0.0, 0.0),
        (0, 1, 0.0, 0.75),
        (1, 0, 0.25, 0.0),
        (1, 1, 0.25, 0.0),
    ]
    assert [one.input_tokens for one in made] == [100, 115, 90, 114]
    assert made[1].parts[:1] == made[0].parts


def test_a_window_leaves_out_the_rest_of_a_session_that_began_before_it() -> None:
    made = replay(SESSIONS, Window(2, 2048, 128, from_s=0.4), "aiperf")

    assert [one.input_tokens for one in made] == [90, 114]


def test_a_weka_session_pauses_as_recorded_and_its_sub_agents_are_sessions_of_their_own() -> None:
    made = replay(WEKA, Window(4, 2048, 128), "weka")

    assert [(one.session, one.turn, one.pause_s, one.input_tokens) for one in made] == [
        (0, 0, 0.0, 100),
        (0, 1, 0.25, 160),
        (1, 0, 0.0, 64),
        (2, 0, 0.0, 60),
    ]
    assert made[0].parts[0] == made[1].parts[0] == made[2].parts[0] != made[3].parts[0]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("azure", "TIMESTAMP,ContextTokens\n", "trace:1: the column GeneratedTokens is missing"),
        ("azure", AZURE.replace("374", "-374"), "trace:2: ContextTokens must be a whole number of tokens, at least 1"),
        ("azure", AZURE.replace("2023-11-16 18:17:04", "soon"), "trace:3: TIMESTAMP must be a date and time"),
        ("mooncake", MOONCAKE.replace("2000", "4000"), "trace:3: 3 s is before the previous arrival at 4 s"),
        ("mooncake", MOONCAKE.replace("1024", "1025"), "trace:2: hash_ids has 2 blocks, but 1025 tokens have 3"),
        ("mooncake", MOONCAKE.replace("[7, 9]", "7"), "trace:3: hash_ids must be a list of block ids"),
        ("mooncake", MOONCAKE.replace("1000", "-5"), "trace:1: input_length must be a whole number of tokens"),
        (
            "mooncake",
            MOONCAKE.replace('"timestamp": 2000', '"timestamp": "x"'),
            "trace:2: timestamp must be a number of",
        ),
        ("mooncake", MOONCAKE.replace('_length": 6', '_length": 600'), "trace:2: an answer of 600 tokens"),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 2049, "output_length": 1}',
            "trace:1: a prompt of 2049 tokens is",
        ),
        ("weka", '{"id": "s", "requests": 3}', "trace:1: requests must be a list of objects"),
    ],
)
def test_what_is_not_valid_is_refused_with_its_line(kind: TraceFormat, text: str, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        replay(text, LONG, kind)

    assert str(caught.value).startswith(said)
