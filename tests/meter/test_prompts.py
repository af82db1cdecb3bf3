"""Prompts follow the plan: of their kind and form, all different, the same for the same seed."""

import base64
import binascii
import json
import struct
import zlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meter.errors import UsageError
from meter.images import image_urls, noise
from meter.plan import parse_plan
from meter.prepare import prepare
from meter.prompt_spec import Prompts
from meter.prompts import Prompt, make_prompts
from meter.sharegpt import Conversation
from meter.words import WORDS
from tests.meter.conftest import PLAN, RunMeter, StartTruth, make_plan

RANDOM = Prompts(kind="random", seed=123, input_tokens=8, token_low=264, token_high=10240)
SHARED = replace(RANDOM, kind="shared-prefix", groups=3, prefix_tokens=6)
TURNS = replace(RANDOM, kind="multi-turn", turns=3)
IMAGES = Prompts(kind="images", seed=123, input_tokens=8, form="chat", width=20, height=11, images=2)
TEXT: dict[str, Any] = {"kind": "random", "form": "text", "input_tokens": 16, "seed": 123}


def _ids(prompt: Prompt) -> list[int]:
    found: list[int] = prompt.parts["prompt"]
    return found


def _contents(made: list[Prompt]) -> set[str]:
    return {json.dumps(prompt.parts) for prompt in made}


def _text_of(prompt: Prompt) -> str:
    """The words of a prompt sent as text or as one chat message."""
    return str(prompt.parts["messages"][0]["content"] if "messages" in prompt.parts else prompt.parts["prompt"])


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ({**PLAN["prompts"], "token_low": 20_000}, "token_high must be above"),
        ({**PLAN["prompts"], "token_high": 265}, "only 1 exist"),
        ({**PLAN["prompts"], "kind": "rand"}, "prompts.kind must be"),
        ({"input_tokens": 16}, "has no key prompts.kind"),
        ({**PLAN["prompts"], "form": "xml"}, 'prompts.form must be "tokens" or "text" or "chat", not "xml"'),
        ({**PLAN["prompts"], "form": "text"}, "unknown key prompts.token_low"),
        ({**PLAN["prompts"], "groups": 2}, "unknown key prompts.groups"),
        ({**TEXT, "input_tokens": 0}, "prompts.input_tokens must be a whole number of 1 or more"),
        ({**TEXT, "kind": "shared-prefix", "groups": 2}, "has no key prompts.prefix_tokens"),
        ({**TEXT, "kind": "shared-prefix", "groups": 2, "prefix_tokens": 16}, "prefix_tokens must be below"),
        ({**TEXT, "kind": "shared-prefix", "groups": 257, "prefix_tokens": 1}, "257 distinct prefixes, but only 256"),
        ({**PLAN["prompts"], "kind": "multi-turn"}, "has no key prompts.turns"),
        ({**PLAN["prompts"], "kind": "multi-turn", "turns": 4}, "must be multiples of prompts.turns (4)"),
        ({**PLAN["prompts"], "kind": "multi-turn", "turns": 6}, "1 conversations cannot keep 2 requests in flight"),
        ({**TEXT, "kind": "images", "width": 8, "height": 8, "images": 1}, 'prompts.form must be "chat"'),
        ({**TEXT, "kind": "images", "form": "chat", "width": 8, "height": 8}, "has no key prompts.images"),
        (
            {**TEXT, "kind": "images", "form": "chat", "width": 1, "height": 1, "images": 1 << 24},
            "distinct images, but only",
        ),
        ({**TEXT, "kind": "sharegpt"}, "has no key prompts.path"),
        ({**TEXT, "kind": "sharegpt", "path": "x", "sha256": "abc"}, "prompts.sha256 must be a SHA-256"),
        ({**TEXT, "kind": "sharegpt", "path": "x", "share": 2, "shares": 2}, "prompts.share must be below"),
        ({**TEXT, "kind": "sharegpt", "path": "x", "repeat": 1}, "prompts.repeat must be true or false"),
    ],
)
def test_wrong_prompts_are_refused_by_name(prompts: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_plan(json.dumps(make_plan(prompts=prompts)))

    assert words in str(caught.value)


@settings(deadline=None)
@given(
    count=st.integers(1, 40), tokens=st.integers(2, 20), low=st.integers(0, 50), span=st.integers(8, 30),
    seed=st.integers(0, 2**40),
)  # fmt: skip
def test_prompts_are_distinct_of_exact_length_and_in_range(
    count: int, tokens: int, low: int, span: int, seed: int
) -> None:
    prompts = Prompts(kind="random", input_tokens=tokens, token_low=low, token_high=low + span, seed=seed)

    made = make_prompts(prompts, count, 8)

    assert {len(_ids(prompt)) for prompt in made} == {prompt.tokens for prompt in made} == {tokens}
    assert len(_contents(made)) == count
    assert all(low <= token < low + span for prompt in made for token in _ids(prompt))


def test_all_prompts_that_exist_can_be_drawn() -> None:
    made = make_prompts(replace(RANDOM, input_tokens=1, token_low=10, token_high=14), 4, 8)

    assert sorted(_ids(prompt) for prompt in made) == [[10], [11], [12], [13]]


def test_the_ids_of_a_seed_never_change() -> None:
    assert _ids(make_prompts(replace(RANDOM, input_tokens=4), 1, 8)[0]) == [9223, 1406, 2223, 4421]


@pytest.mark.parametrize(
    "prompts", [RANDOM, SHARED, replace(RANDOM, form="text"), replace(SHARED, form="chat"), IMAGES]
)
def test_prompts_follow_from_the_seed(prompts: Prompts) -> None:
    first = make_prompts(prompts, 7, 8)

    assert make_prompts(prompts, 7, 8) == first
    assert not _contents(make_prompts(replace(prompts, seed=124), 7, 8)) & _contents(first)


@pytest.mark.parametrize("form", ["text", "chat"])
def test_a_text_has_a_common_word_for_each_token_and_no_exact_length(form: str) -> None:
    made = make_prompts(replace(RANDOM, form=form), 5, 8)

    assert [len(_text_of(prompt).split()) for prompt in made] == [8] * 5
    assert {word for prompt in made for word in _text_of(prompt).split()} <= set(WORDS)
    assert {prompt.tokens for prompt in made} == {None}


def test_only_token_ids_and_plain_text_are_known_to_share_nothing() -> None:
    # A chat template begins every prompt alike.
    plans = [replace(RANDOM, form=form) for form in ("tokens", "text", "chat")]

    assert [make_prompts(prompts, 1, 8)[0].cached_tokens for prompts in plans] == [0, 0, None]


def test_a_group_shares_its_prefix_and_nothing_more() -> None:
    made = make_prompts(SHARED, 7, 8)

    prefixes = [tuple(_ids(prompt)[:6]) for prompt in made]
    assert len(set(prefixes)) == 3
    assert prefixes[:3] == prefixes[3:6]
    assert len({tuple(_ids(prompt)[6:]) for prompt in made}) == 7


def test_a_prefix_can_be_cached_from_its_second_prompt_on() -> None:
    made = make_prompts(SHARED, 7, 8)

    assert [prompt.cached_tokens for prompt in made] == [0, 0, 0, 6, 6, 6, 6]


def test_a_shared_prefix_as_chat_is_the_beginning_of_one_message() -> None:
    made = make_prompts(replace(SHARED, groups=1, form="chat"), 2, 8)

    first, second = (_text_of(prompt).split() for prompt in made)
    assert first[:6] == second[:6]
    assert first[6:] != second[6:]
    assert made[1].cached_tokens is None


def test_a_turn_holds_all_earlier_turns_and_new_text() -> None:
    made = make_prompts(TURNS, 6, 5)

    assert [(prompt.conversation, prompt.turn) for prompt in made] == [(at // 3, at % 3) for at in range(6)]
    assert [prompt.tokens for prompt in made] == [len(_ids(prompt)) for prompt in made] == [8, 21, 34] * 2
    for earlier, later in pairwise(made):
        assert (_ids(later)[: len(_ids(earlier))] == _ids(earlier)) == (later.turn != 0)
    assert len({tuple(_ids(prompt)[:8]) for prompt in made}) == 2


def test_a_turn_can_find_the_prompt_before_it_in_the_cache() -> None:
    assert [prompt.cached_tokens for prompt in make_prompts(TURNS, 6, 5)] == [0, 8, 21] * 2


def test_a_conversation_as_chat_takes_turns() -> None:
    made = make_prompts(replace(TURNS, form="chat"), 3, 5)

    messages = made[2].parts["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [len(message["content"].split()) for message in messages] == [8, 5, 8, 5, 8]
    assert messages[:3] == made[1].parts["messages"]


def test_conversations_need_a_closed_load() -> None:
    plan = make_plan(
        prompts={**PLAN["prompts"], "kind": "multi-turn", "turns": 3}, load={"kind": "poisson", "rate_per_s": 1.0}
    )

    with pytest.raises(UsageError, match="Multi-turn prompts need a closed load, not poisson"):
        parse_plan(json.dumps(plan))


def _pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and lines of a PNG, each chunk's checksum verified."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        chunks[kind] = png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == binascii.crc32(kind + chunks[kind])
        at += 12 + length
    width, height, depth, colours = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colours) == (8, 2)
    raw = zlib.decompress(chunks[b"IDAT"])
    stride = 1 + 3 * width
    lines: list[bytes] = []
    for number in range(height):
        kind_of_line, line = raw[number * stride], raw[number * stride + 1 : (number + 1) * stride]
        above = lines[-1] if kind_of_line == 2 else bytes(3 * width)
        lines.append(bytes((here + there) % 256 for here, there in zip(line, above, strict=True)))
    assert len(raw) == height * stride
    return width, height, lines


def test_an_image_is_a_png_of_the_requested_size_in_squares_of_one_colour() -> None:
    width, height, lines = _pixels(noise(20, 11, "seed"))

    assert (width, height) == (20, 11)
    assert [earlier == later for earlier, later in pairwise(lines)] == [True] * 7 + [False] + [True] * 2
    assert {lines[0][at : at + 3] for at in range(0, 24, 3)} == {lines[0][:3]}
    assert lines[0][24:27] != lines[0][:3]


def test_every_prompt_has_its_own_images_beside_a_text() -> None:
    made = make_prompts(IMAGES, 5, 8)

    contents = [prompt.parts["messages"][0]["content"] for prompt in made]
    assert [Counter(part["type"] for part in content) for content in contents] == [{"image_url": 2, "text": 1}] * 5
    urls = [part["image_url"]["url"] for content in contents for part in content if part["type"] == "image_url"]
    assert len(set(urls)) == 10
    assert [_pixels(base64.b64decode(url.removeprefix("data:image/png;base64,")))[:2] for url in urls] == [
        (20, 11)
    ] * 10


def test_another_seed_gives_other_images() -> None:
    first, second = (set(next(image_urls(replace(IMAGES, seed=seed), 1))) for seed in (1, 2))

    assert not first & second


def test_a_request_has_the_content_of_the_plan_and_its_own_id() -> None:
    plan = parse_plan(json.dumps(make_plan(warmup_count=1)))

    requests = prepare(plan, "host:1", "abc")

    head, _blank, body = requests[1].payload.partition(b"\r\n\r\n")
    sent = json.loads(body)
    assert b"X-Request-Id: meter-abc-000001" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert len(sent.pop("prompt")) == 16
    assert sent == {
        "model": "small", "max_tokens": 8, "stream": True, "stream_options": {"include_usage": True},
        "temperature": 0.0, "ignore_eos": True, "return_token_ids": True,
    }  # fmt: skip
    assert len({request.body_sha256 for request in requests}) == 7


def test_a_chat_names_its_limit_by_the_newer_word() -> None:
    plan = parse_plan(json.dumps(make_plan(prompts={**TEXT, "form": "chat"}, path="/v1/chat/completions")))

    request = prepare(plan, "host:1", "abc")[0]

    sent = json.loads(request.payload.partition(b"\r\n\r\n")[2])
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert sent["max_completion_tokens"] == 8
    assert not {"prompt", "max_tokens"} & set(sent)


TALKS = [
    {"id": "a", "conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "Because. " * 10}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "Hello"}, {"from": "user", "value": "Where is it?"}]},
    {"id": "c", "conversations": [{"from": "human", "value": "Why?"}]},
    {"id": "long", "conversations": [{"from": "human", "value": "word " * 100}]},
    {"id": "empty", "conversations": []},
    {"conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Who, then?"}]},
]


def _recorded(path: Path, **changes: object) -> Prompts:
    asked: dict[str, Any] = {"kind": "sharegpt", "form": "text", "seed": 1, "input_tokens": 20, "path": str(path)}
    return Prompts(**asked | changes)


@pytest.fixture(params=["json", "jsonl"])
def talks(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"talks.{request.param}"
    jsonl = "".join(json.dumps(talk) + "\n\n" for talk in TALKS)
    path.write_text(json.dumps(TALKS, indent=1) if request.param == "json" else jsonl)
    return path


def test_each_conversation_gives_its_first_human_turn_once(talks: Path) -> None:
    made = make_prompts(_recorded(talks), 3, 8)

    assert sorted(_text_of(prompt) for prompt in made) == ["Where is it?", "Who, then?", "Why?"]
    assert {prompt.output_tokens for prompt in made} == {8}


def test_a_conversation_without_an_id_is_known_by_its_line(talks: Path) -> None:
    line = (
        11 if talks.suffix == ".jsonl" else talks.read_text()[: talks.read_text().rindex('{\n  "conv')].count("\n") + 1
    )

    assert str(line) in {prompt.prompt_id for prompt in make_prompts(_recorded(talks), 3, 8)}


def test_recorded_answers_set_the_requested_length_up_to_the_plans_limit(talks: Path) -> None:
    asked = {limit: make_prompts(_recorded(talks, output="recorded"), 3, limit) for limit in (8, 100)}

    lengths = {limit: {p.prompt_id: p.output_tokens for p in made}["a"] for limit, made in asked.items()}
    assert lengths == {8: 8, 100: 22}


def test_runs_with_a_share_each_have_no_conversation_in_common(talks: Path) -> None:
    for order_seed in range(9):
        # However long each of them lets a prompt be.
        ours = _recorded(talks, seed=1, order_seed=order_seed, input_tokens=20, share=0, shares=2)
        theirs = _recorded(talks, seed=2, order_seed=order_seed, input_tokens=200, share=1, shares=2)

        assert not _contents(make_prompts(ours, 1, 8)) & _contents(make_prompts(theirs, 2, 8))


def test_too_few_conversations_are_refused_unless_they_may_repeat(talks: Path) -> None:
    with pytest.raises(UsageError, match=r"has 3 different prompts of about 20 tokens or less, but 4 are needed"):
        make_prompts(_recorded(talks), 4, 8)

    assert len(make_prompts(_recorded(talks, repeat=True), 4, 8)) == 4


def test_a_file_with_another_sha256_is_refused(talks: Path) -> None:
    with pytest.raises(UsageError, match="SHA-256 mismatch with the plan"):
        make_prompts(_recorded(talks, sha256="0" * 64), 1, 8)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"conversations": []}\n{oops\n', "talks:2: not JSON"),
        ('{"conversations": []}\n\n[1]\n', "talks:3: not a conversation"),
        ('{"conversations": []}\n{"conversations": [{"from": "human"}]}\n', 'talks:2: a turn needs the texts "from"'),
        ('[{"conversations": []},\n\n{"conversations": 3}]', "talks:3: not a conversation"),
        ('[{"conversations": []},\n{"conversations": []', "talks:2: not JSON"),
        ('[\n{"conversations": []}', "talks:2: not JSON"),
        (b'{"conversations": []}\n\xff\n', "talks:2: not UTF-8"),
    ],
)
def test_a_malformed_conversation_is_named_by_file_and_line(tmp_path: Path, content: str | bytes, words: str) -> None:
    path = tmp_path / "talks"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(UsageError) as caught:
        make_prompts(_recorded(path), 1, 8)

    assert words in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere cannot be read"):
        make_prompts(_recorded(tmp_path / "nowhere"), 1, 8)


def test_a_server_finds_as_much_of_a_shared_prefix_as_was_planned(start_truth: StartTruth, run_meter: RunMeter) -> None:
    truth = start_truth("", "--enable-prompt-tokens-details")
    shared = {**PLAN["prompts"], "kind": "shared-prefix", "groups": 2, "prefix_tokens": 32, "input_tokens": 48}

    report = run_meter(truth.url, prompts=shared, load={"kind": "closed", "concurrency": 1}, warmup_count=1)

    assert report.outcomes == ["ok"] * 7
    assert [row["cached_tokens"] for row in report.rows] == [0, 0] + [32] * 5
    assert [row["cached_tokens_planned"] for row in report.rows] == [0, 0] + [32] * 5
    assert {row["prompt_tokens_counted"] for row in report.rows} == {48}


def test_a_text_prompt_is_counted_by_the_server_alone(start_truth: StartTruth, run_meter: RunMeter) -> None:
    report = run_meter(start_truth().url, prompts=TEXT)

    assert report.outcomes == ["ok"] * 6
    assert {row["prompt_tokens_planned"] for row in report.rows} == {None}
    assert {row["prompt_tokens_counted"] for row in report.rows} == {17}
    assert len({row["prompt_id"] for row in report.rows}) == 6


@pytest.mark.parametrize("more", [{}, {"kind": "images", "width": 24, "height": 16, "images": 2}])
def test_a_chat_is_answered_with_or_without_images(
    start_truth: StartTruth, run_meter: RunMeter, more: dict[str, object]
) -> None:
    chat = {**TEXT, "form": "chat", **more}

    report = run_meter(start_truth().url, prompts=chat, path="/v1/chat/completions")

    assert report.outcomes == ["ok"] * 6
    # The emulator's template costs three tokens, and each image 256.
    assert {row["prompt_tokens_counted"] for row in report.rows} == {3 + 16 + 256 * 2 * bool(more)}
    assert {(row["prompt_tokens_planned"], row["cached_tokens_planned"]) for row in report.rows} == {(None, None)}


def test_a_malformed_conversation_is_reported_before_anything_is_sent(tmp_path: Path, run_meter: RunMeter) -> None:
    path = tmp_path / "talks.jsonl"
    path.write_text('{"conversations": []}\n{oops\n')

    report = run_meter("http://127.0.0.1:1", prompts={**TEXT, "kind": "sharegpt", "path": str(path)})

    assert report.exit_code == 2
    assert report.stderr.endswith(".\n")
    assert f"{path}:2: not JSON" in report.stderr
    assert report.stderr.count("\n") == 1
    assert not report.folder.exists()


def test_half_a_character_of_a_recorded_conversation_has_a_length() -> None:
    assert Conversation("1", "hi \ud83d", "yes").prompt_tokens >= 1
