import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.engines.vllm import NUMERIC_FLAGS
from bench.errors import UnreadableResultError
from bench.quality import passage
from bench.quality.answers import (
    GREEDY_TOKENS,
    NOT_A_NUMBER,
    agreed_share,
    ask_greedy,
    ask_passage,
    changes,
    fall,
    fingerprint,
    last_answers,
    numeric_settings,
    quality_id,
    read_greedy,
    read_logprobs,
    with_last_answers,
)
from bench.record import Accuracy, Answers, LeaseFacts, RunRecord
from bench.server_facts import Weights
from tests.bench.builders import ANSWERS, run_record

# vLLM 0.32.0 on CPU, asked with prompt_logprobs = 0 and return_token_ids (the middle of its prompt was cut out).
CHOICE = {
    "index": 0,
    "text": " bewizo",
    "token_ids": [8175],
    "prompt_logprobs": [
        None,
        {"122": {"logprob": -11.861791610717773, "rank": 6636, "decoded_token": "r"}},
        {"71": {"logprob": -9.626728057861328, "rank": 2197, "decoded_token": "?"}},
    ],
    "prompt_token_ids": [1, 122, 71],
}
WEIGHTS = Weights(revision="r1", sha256="1" * 64, bytes=10)


def _said(**changes: Any) -> str:
    return json.dumps({"choices": [CHOICE | changes]})


def _token(logprob: object) -> list[object]:
    return [None, {"122": {"logprob": logprob}}, {"71": {"logprob": -1.0}}]


def test_the_passage_changes_only_with_its_version() -> None:
    text = json.dumps([passage.VERSION, passage.TEXT, passage.PROMPTS])

    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "6459c9754d5e42eb"


def test_every_question_is_greedy_and_reads_nothing_from_a_prefix_cache() -> None:
    asked = [ask_passage("m"), ask_greedy("m", "one, two,")]

    assert [(body["temperature"], body["prompt_logprobs"], body["max_tokens"]) for body in asked] == [
        (0.0, 0, 1),
        (0.0, 0, GREEDY_TOKENS),
    ]
    assert asked[1]["ignore_eos"] is True


def test_the_mean_is_over_all_tokens_but_the_first() -> None:
    mean, count = read_logprobs(_said())

    assert count == 2
    assert mean == pytest.approx((-11.861791610717773 - 9.626728057861328) / 2)


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf"), None])
def test_one_token_without_a_number_leaves_the_mean_without_one(logprob: float | None) -> None:
    assert read_logprobs(_said(prompt_logprobs=_token(logprob))) == (NOT_A_NUMBER, 2)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        '{"choices": []}',
        _said(prompt_logprobs=None),
        _said(prompt_token_ids=None),
        _said(prompt_token_ids=[1]),
        _said(prompt_token_ids=[1, 5, 71]),
        _said(prompt_logprobs=_token("high")),
    ],
)
def test_an_answer_without_log_probabilities_is_said_to_have_none(answer: str) -> None:
    with pytest.raises(UnreadableResultError, match="no log-probabilities"):
        read_logprobs(answer)


def test_greedy_tokens_are_read_as_they_stand() -> None:
    ids = list(range(GREEDY_TOKENS))

    assert read_greedy(_said(token_ids=ids)) == tuple(ids)


@pytest.mark.parametrize(("ids", "words"), [(None, "no token ids"), ([1, 2], "2 of 16 requested tokens")])
def test_an_answer_cut_short_is_no_fingerprint(ids: object, words: str) -> None:
    with pytest.raises(UnreadableResultError, match=words):
        read_greedy(_said(token_ids=ids))


def test_equal_answers_have_one_fingerprint_and_others_another() -> None:
    assert fingerprint([(1, 2), (3,)]) == fingerprint([[1, 2], [3]])
    assert fingerprint([(1, 2), (3,)]) != fingerprint([(1,), (2, 3)])
    assert fingerprint([]) is None


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ([(1, 2, 3, 4)], [(1, 2, 3, 4)], 1.0),
        ([(1, 2, 3, 4)], [(1, 2, 9, 4)], 0.5),  # what follows a difference agrees by chance only
        ([(1, 2), (3, 4)], [(9, 2), (3, 4)], 0.5),
        ([(1, 2)], [(1, 2), (3, 4)], None),
        ([(1, 2)], [(1,)], None),
        ([], [], None),
    ],
)
def test_agreement_counts_the_tokens_before_the_first_difference(
    first: list[tuple[int, ...]], second: list[tuple[int, ...]], share: float | None
) -> None:
    assert agreed_share(first, second) == share


def test_a_fall_is_that_of_the_worse_mean_below_the_median_of_earlier_nights() -> None:
    assert fall((-2.0, -2.5), [-2.0, -9.0, -1.0]) == 0.5
    assert fall((-2.0, None), [-2.0]) == 0.0
    assert fall((None, None), [-2.0]) is None
    assert fall((-2.0, -2.0), []) is None


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (("--dtype", "bfloat16", "--enforce-eager"), ["--dtype=bfloat16"]),
        (("--dtype=bfloat16", "--max-num-seqs", "8"), ["--dtype=bfloat16"]),
        (("--calculate-kv-scales", "--enforce-eager"), ["--calculate-kv-scales"]),
        (("--max-num-seqs", "8", "--quantization"), ["--quantization"]),
        ((), []),
    ],
)
def test_only_flags_that_change_numbers_belong_to_what_is_compared(flags: tuple[str, ...], settings: list[str]) -> None:
    assert list(numeric_settings(flags, NUMERIC_FLAGS)) == settings


def _with_engine(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    def change(record: RunRecord) -> RunRecord:
        engine = record.asked.engine.model_copy(update=changes)
        return record.model_copy(update={"asked": record.asked.model_copy(update={"engine": engine})})

    return change


def _series(change: Callable[[RunRecord], RunRecord] = lambda record: record) -> str | None:
    return quality_id(change(run_record().model_copy(update={"weights": WEIGHTS})))


@pytest.mark.parametrize(
    "change", [_with_engine(version="0.33.0"), _with_engine(flags=("--dtype", "bfloat16", "--max-num-seqs", "8"))]
)
def test_a_newer_or_quicker_engine_must_keep_the_answers(change: Callable[[RunRecord], RunRecord]) -> None:
    assert _series(change) == _series()


@pytest.mark.parametrize(
    "change",
    [
        _with_engine(flags=("--dtype", "float32")),
        lambda record: record.model_copy(update={"weights": WEIGHTS.model_copy(update={"sha256": "2" * 64})}),
        lambda record: record.model_copy(update={"accuracy": record.accuracy.model_copy(update={"passage": "2"})}),
    ],
    ids=["dtype", "weights", "passage"],
)
def test_other_numbers_or_another_passage_are_another_series(change: Callable[[RunRecord], RunRecord]) -> None:
    assert _series(change) not in (None, _series())


def test_a_run_whose_server_was_not_asked_is_in_no_series() -> None:
    assert _series(lambda record: record.model_copy(update={"accuracy": None})) is None
    assert _series(lambda record: record.model_copy(update={"weights": None})) is None


def _on_server(order: int, after: Answers | None, **server: object) -> RunRecord:
    record = run_record()
    assert record.server is not None
    return record.model_copy(
        update={
            "order": order,
            "server": record.server.model_copy(update=server),
            "accuracy": Accuracy(passage="1", before=ANSWERS, after=after),
        }
    )


def test_the_answers_after_the_last_load_count_for_every_run_of_the_same_server_process() -> None:
    broken = ANSWERS.model_copy(update={"logprob_mean": -2.2})
    first, second = _on_server(0, None), _on_server(1, None)
    last = _on_server(2, broken).model_copy(update={"outcome": "failed"})

    found = last_answers([last, first, second])

    assert [changes(with_last_answers(run, found))["ev_logprob_change"] for run in (first, second, last)] == [
        pytest.approx(0.2)
    ] * 3


@pytest.mark.parametrize("server", [{"pid": 9}, {"cold_start_s": 9.0}])
def test_the_answers_of_another_server_process_count_for_none(server: dict[str, object]) -> None:
    first, other = _on_server(0, None), _on_server(1, ANSWERS, **server)

    assert with_last_answers(first, last_answers([first, other])) == first


def test_answers_of_another_lease_count_for_none() -> None:
    lease = LeaseFacts(lease_id="two", cloud="test", machine_id="m", usd_per_hour=1.0)
    first, other = _on_server(0, None), _on_server(1, ANSWERS).model_copy(update={"lease": lease})

    assert with_last_answers(first, last_answers([first, other])) == first


def test_a_record_with_answers_of_its_own_after_its_load_keeps_them() -> None:
    first, last = _on_server(0, ANSWERS), _on_server(1, ANSWERS.model_copy(update={"logprob_mean": -3.0}))

    assert with_last_answers(first, last_answers([first, last])) == first


def test_a_record_without_answers_or_without_a_server_stays_as_it_is() -> None:
    found = last_answers([_on_server(0, ANSWERS)])
    never = _on_server(1, None).model_copy(update={"accuracy": None})
    unserved = _on_server(1, None).model_copy(update={"server": None})

    assert [with_last_answers(record, found) for record in (never, unserved)] == [never, unserved]
    assert last_answers([never, unserved]) == {}
