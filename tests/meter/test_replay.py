"""The prompts of a trace share exactly what it says, and the server's prefix cache counts just that."""

import json
from typing import Any

import pytest

from meter.errors import UsageError
from meter.plan import parse_plan
from meter.prompt_spec import read_prompts
from meter.prompts import Prompt, make_prompts
from tests.meter.conftest import RunMeter, StartTruth, make_plan

REPLAY: dict[str, Any] = {"kind": "replay", "seed": 5, "input_tokens": 200, "token_low": 264, "token_high": 10240}


def request(output_tokens: int, *parts: tuple[int, int]) -> dict[str, Any]:
    return {"output_tokens": output_tokens, "parts": [list(part) for part in parts]}


REQUESTS = [
    request(3, (0, 64), (1, 20)),
    request(4, (0, 64), (1, 32), (2, 5)),
    request(5, (0, 64), (3, 10)),
    request(6, (3, 64)),
    request(3, (3, 64)),
]


def made(seed: int = 5) -> list[Prompt]:
    return make_prompts(read_prompts({**REPLAY, "seed": seed, "requests": REQUESTS}), len(REQUESTS), 1)


def ids(prompt: Prompt) -> list[int]:
    found: list[int] = prompt.parts["prompt"]
    return found


def common(one: list[int], other: list[int]) -> int:
    differing = (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))


def test_prompts_share_the_parts_that_they_name_and_nothing_else() -> None:
    prompts = [ids(prompt) for prompt in made()]

    assert [len(prompt) for prompt in prompts] == [84, 101, 74, 64, 64]
    assert [common(prompts[0], later) for later in prompts[1:]] == [84, 64, 0, 0]
    assert prompts[3][:10] == prompts[2][64:]  # the same content, though at another place
    assert [prompt.output_tokens for prompt in made()] == [3, 4, 5, 6, 3]


def test_what_a_cache_can_have_is_the_longest_beginning_of_an_earlier_prompt() -> None:
    assert [prompt.cached_tokens for prompt in made()] == [0, 84, 64, 0, 64]


def test_the_same_seed_gives_the_same_prompts_and_another_one_shares_nothing_with_them() -> None:
    assert [prompt.parts for prompt in made()] == [prompt.parts for prompt in made()]
    assert [common(ids(one), ids(other)) for one, other in zip(made(), made(6), strict=True)] == [0] * 5


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (REQUESTS[:3], "prompts.requests has 3 of 5 requests"),
        ([{"output_tokens": 3}], "prompts.requests must be a list of objects"),
        ([request(0, (0, 5))], "prompts.requests must be a list of objects"),
        ([request(3, (0, -5))], "prompts.requests must be a list of objects"),
        ([request(3)], "prompts.requests must be a list of objects"),
        ([{**request(3, (0, 5)), "text": "no"}], "prompts.requests must be a list of objects"),
    ],
)
def test_requests_that_cannot_be_sent_are_refused(requests: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_plan(json.dumps(make_plan(prompts={**REPLAY, "requests": requests}, request_count=5)))

    assert words in str(caught.value)


def test_a_server_counts_the_tokens_and_the_hits_that_were_planned(
    start_truth: StartTruth, run_meter: RunMeter
) -> None:
    truth = start_truth("", "--enable-prompt-tokens-details")
    load = {"kind": "trace", "arrivals_s": [0.2 * number for number in range(5)]}

    report = run_meter(
        truth.url, load=load, prompts={**REPLAY, "requests": REQUESTS}, request_count=5, cache_block_tokens=16
    )

    rows = report.requests
    assert [row["prompt_tokens_counted"] for row in rows] == [84, 101, 74, 64, 64]
    assert [row["output_tokens_counted"] for row in rows] == [3, 4, 5, 6, 3]
    assert (
        [row["cached_tokens"] for row in rows] == [row["cached_tokens_planned"] for row in rows] == [0, 80, 64, 0, 48]
    )
