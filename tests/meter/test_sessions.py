"""Sessions: a turn waits for the answer before it, and pauses; so many are open, or each begins at its time."""

import json
from itertools import groupby, pairwise
from typing import Any

import pytest

from meter.errors import UsageError
from meter.plan import parse_plan
from tests.meter.conftest import RunMeter, StartTruth, make_plan

PAUSE_NS = 60_000_000
TALK = {"kind": "multi-turn", "seed": 5, "input_tokens": 16, "token_low": 264, "token_high": 10240, "turns": 3}
REPLAY = {"kind": "replay", "seed": 5, "input_tokens": 99, "token_low": 264, "token_high": 10240}


def sessions_of(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [list(turns) for _, turns in groupby(rows, lambda row: row["conversation"])]


def most_open(sessions: list[list[dict[str, Any]]]) -> int:
    spans: list[tuple[int, int]] = [(turns[0]["send_start_ns"], turns[-1]["done_at_ns"]) for turns in sessions]
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def recorded(session: int, turn: int, pause_s: float) -> dict[str, Any]:
    parts = [[10 * session + number, 16] for number in range(turn + 1)]
    return {"output_tokens": 2, "parts": parts, "session": session, "turn": turn, "pause_s": pause_s}


def test_a_turn_is_due_its_pause_after_the_answer_and_only_so_many_sessions_are_open(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    load = {"kind": "sessions", "concurrency": 2}
    prompts = {**TALK, "pause_s": PAUSE_NS / 1e9}
    report = run_meter(truth.url, load=load, prompts=prompts, request_count=12, warmup_count=3, output_tokens=2)

    sessions = sessions_of(report.requests)
    assert report.outcomes == ["ok"] * 15
    assert [[row["turn"] for row in turns] for turns in sessions] == [[0, 1, 2]] * 5
    assert most_open(sessions) == 2
    for turns in sessions:
        assert [later["intended_at_ns"] - earlier["done_at_ns"] for earlier, later in pairwise(turns)] == [
            PAUSE_NS,
            PAUSE_NS,
        ]
        assert all(row["send_start_ns"] >= row["intended_at_ns"] for row in turns[1:])
    # A slot falls free when its session ends, not between two turns.
    ends = {turns[-1]["done_at_ns"] for turns in sessions}
    begun = [turns[0]["slot_free_ns"] for turns in sessions]
    assert begun.count(None) == 2, "the first of each slot waits for none"
    assert set(begun) - {None} <= ends
    assert report.summary["steady"] is None


def test_a_recorded_session_begins_at_its_time_and_pauses_as_recorded(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()
    requests = [recorded(0, 0, 0), recorded(0, 1, 0.3), recorded(0, 2, 0), recorded(1, 0, 0), recorded(1, 1, 0.05)]

    load = {"kind": "trace", "arrivals_s": [0, 0, 0, 0.1, 0.1]}
    report = run_meter(truth.url, load=load, prompts={**REPLAY, "requests": requests}, request_count=5)

    first, second = sessions_of(report.requests)
    assert second[0]["intended_at_ns"] - first[0]["intended_at_ns"] == 100_000_000
    pauses = [
        later["intended_at_ns"] - earlier["done_at_ns"]
        for turns in (first, second)
        for earlier, later in pairwise(turns)
    ]
    assert pauses == [300_000_000, 0, 50_000_000]
    assert [row["cached_tokens_planned"] for row in first] == [0, 16, 32]


def test_a_failed_turn_does_not_end_its_session(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("http500:4")

    load = {"kind": "sessions", "concurrency": 2}
    report = run_meter(truth.url, load=load, prompts={**TALK, "pause_s": 0.01}, request_count=12, output_tokens=2)

    assert report.outcomes.count("ok") == 9
    assert len(report.requests) == 12


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"load": {"kind": "sessions", "concurrency": 2}}, "A load of sessions needs multi-turn prompts"),
        ({"prompts": {**TALK, "pause_s": 1.0}}, "A closed load does not pause"),
        (
            {"prompts": {**TALK, "pause_s": 0}, "load": {"kind": "sessions", "concurrency": 2}},
            "prompts.pause_s must be",
        ),
        ({"prompts": {**REPLAY, "requests": [recorded(0, 0, -1.0)] * 6}}, "prompts.requests must be a list of objects"),
    ],
)
def test_sessions_that_cannot_be_kept_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_plan(json.dumps(make_plan(**changes)))

    assert words in str(caught.value)
