"""What an event is: role, reasoning, answer, finish; and that only tokens count as tokens."""

from typing import Any

import pytest

from tests.meter.conftest import PLAN, RunMeter, StartTruth

CHAT: dict[str, Any] = {
    "path": "/v1/chat/completions",
    "prompts": {"kind": "random", "form": "chat", "input_tokens": 16, "seed": 5},
    "load": {"kind": "closed", "concurrency": 1},
    "request_count": 3,
}
ROOMY_MS = 60.0  # to the first token: far longer than this host takes to read an event


def test_a_chat_is_read_like_a_completion(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth()

    report = run_meter(truth.url, **CHAT)

    assert report.outcomes == ["ok"] * 3
    for row in report.rows:
        assert row["kinds"] == ["role", *["content"] * 8, "usage", "done"]
        assert row["event_tokens"] == [1] * 8
        assert row["tokens_by"] == "ids"


def test_the_first_token_is_not_the_role(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("role_first", ttft_ms=ROOMY_MS)

    report = run_meter(truth.url, **CHAT)

    for row in report.rows:
        assert row["kinds"][0] == "role"
        assert row["first_token_at_ns"] - row["send_start_ns"] >= ROOMY_MS * 1e6
        assert row["first_event_at_ns"] < row["first_token_at_ns"]


def test_the_first_token_may_be_reasoning_and_the_answer_has_its_own_time(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth("reasoning:5")

    report = run_meter(truth.url, **CHAT)

    for row in report.rows:
        assert row["kinds"][:9] == ["role", *["reasoning"] * 5, *["content"] * 3]
        assert row["event_tokens"] == [1] * 8
        assert row["first_token_at_ns"] == row["event_at_ns"][0]
        assert row["first_content_at_ns"] == row["event_at_ns"][5]
        assert row["outcome"] == "ok"


@pytest.mark.parametrize("changes", [CHAT, {**CHAT, "path": PLAN["path"], "prompts": PLAN["prompts"]}])
def test_a_finish_reason_in_an_event_of_its_own_is_not_a_token(
    start_truth: StartTruth, run_meter: RunMeter, changes: dict[str, Any]
) -> None:
    truth = start_truth("finish_apart")

    report = run_meter(truth.url, **changes)

    assert report.outcomes == ["ok"] * 3
    for row in report.rows:
        assert row["kinds"][-3:] == ["finish", "usage", "done"]
        assert sum(row["event_tokens"]) == 8


def test_a_comment_is_not_a_token(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("ping,role_first", ttft_ms=ROOMY_MS)

    report = run_meter(truth.url, request_count=2)

    for row in report.rows:
        assert row["kinds"] == ["comment", *["content"] * 8, "usage", "done"]
        assert row["first_token_at_ns"] - row["send_start_ns"] >= ROOMY_MS * 1e6


def test_running_counts_give_the_tokens_of_an_event_without_ids(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("usage_running,tokens_per_event:3")

    report = run_meter(truth.url, extra_body={"ignore_eos": True})

    for row in report.rows:
        assert row["event_tokens"] == [3, 3, 2]
        assert row["tokens_by"] == "usage"


def test_an_event_with_nothing_but_text_counts_as_one_token_and_says_so(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth()

    report = run_meter(truth.url, extra_body={"ignore_eos": True})

    assert {row["tokens_by"] for row in report.rows} == {"events"}


@pytest.mark.parametrize("fault", ["sse_error:3", "cut:3", "no_done:3", "no_usage:3", "garbage:3", "http500:3"])
def test_a_chat_fails_as_a_completion_does(start_truth: StartTruth, run_meter: RunMeter, fault: str) -> None:
    truth = start_truth(fault)

    report = run_meter(truth.url, **CHAT)

    expected = {"sse_error:3": "sse_error", "cut:3": "truncated", "no_done:3": "truncated", "http500:3": "http"}
    assert report.outcomes == ["ok", "ok", expected.get(fault, "parse")]
