"""Written prompts are distinct, the same for a seed, about as long as requested, and begin differently."""

import pytest

from meter.errors import UsageError
from meter.passages import PASSAGES
from meter.prompt_spec import Prompts, check_room
from meter.prompts import make_prompts
from meter.written import distinct_count, written_prompts


def _asking(tokens: int, form: str = "text") -> Prompts:
    return Prompts(kind="written", seed=7, input_tokens=tokens, form=form)


@pytest.mark.parametrize("tokens", [1, 128, 1000])
def test_written_prompts_are_distinct_and_the_same_for_a_seed(tokens: int) -> None:
    texts = list(written_prompts(7, tokens, 500))

    assert len(set(texts)) == 500
    assert texts == list(written_prompts(7, tokens, 500))
    assert texts != list(written_prompts(8, tokens, 500))
    mean = sum(len(text.encode()) for text in texts) / len(texts) / 4
    assert 0.75 * tokens < mean < 1.4 * max(tokens, 110)


def test_no_passage_is_the_beginning_of_another() -> None:
    assert len({text[:16] for text in PASSAGES}) == len(PASSAGES)


def test_a_written_prompt_is_sent_as_text_or_chat() -> None:
    (as_text,), (as_chat,) = make_prompts(_asking(100), 1, 9), make_prompts(_asking(100, "chat"), 1, 9)

    assert as_chat.parts["messages"][0]["content"] == as_text.parts["prompt"]
    assert (as_text.tokens, as_text.cached_tokens, as_text.output_tokens) == (None, None, 9)


def test_more_written_prompts_than_exist_are_refused() -> None:
    exist = distinct_count(100)
    check_room(_asking(100), exist)

    with pytest.raises(UsageError, match=f"only {exist} written ones of about 100 tokens exist"):
        check_room(_asking(100), exist + 1)
