"""What the flags of each engine ask for, in each way that they can be written."""

import pytest

from bench.engines import vllm
from bench.engines.acceptance import acceptance_of
from bench.engines.speculation import Speculation, speculation_of

NGRAM = '{"method": "ngram", "num_speculative_tokens": 3}'


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--dtype bfloat16", None),
        (("--speculative-config", NGRAM), Speculation("ngram", 3)),
        (("-sc", NGRAM), Speculation("ngram", 3)),
        (f"--speculative_config={NGRAM}".replace(" ", ""), Speculation("ngram", 3)),
        ("--speculative-config.method mtp --speculative-config.num_speculative_tokens 1", Speculation("mtp", 1)),
        (("--speculative-config", '{"model": "a/b"}'), Speculation("draft_model", None, "a/b")),
        (
            "--speculative-algorithm EAGLE3 --speculative-num-draft-tokens 4 --speculative-draft-model-path a/b",
            Speculation("eagle3", 4, "a/b"),
        ),
        ("--speculative-algorithm NEXTN", Speculation("nextn")),
        ("-md draft.gguf --draft-max 8", Speculation("draft_model", 8, "draft.gguf")),
    ],
)
def test_flags_say_how_an_engine_speculates(words: str | tuple[str, ...], found: Speculation | None) -> None:
    assert speculation_of(words.split() if isinstance(words, str) else words) == found


def test_layers_of_the_model_itself_draft_only_where_the_method_says_so() -> None:
    assert [Speculation(method).is_own_head for method in ("mtp", "deepseek_mtp", "nextn", "ngram", None)] == [
        *(True, True, True),
        *(False, False),
    ]


def test_acceptance_is_counted_as_vllm_counts_it() -> None:
    labels = 'engine="0",model_name="tiny"'
    page = "".join(
        f"vllm:spec_decode_num_{name} {count}\n"
        for name, count in {
            f"drafts_total{{{labels}}}": 308,
            f"draft_tokens_total{{{labels}}}": 910,
            f"accepted_tokens_total{{{labels}}}": 501,
            f'accepted_tokens_per_pos_total{{{labels},position="0"}}': 218,
            f'accepted_tokens_per_pos_total{{{labels},position="2"}}': 122,
        }.items()
    )

    found = acceptance_of(vllm.counters(page))

    assert found is not None
    assert found.length == 1 + 501 / 308
    assert (found.rate, found.rate_at(0), found.rate_at(2)) == (501 / 910, 218 / 308, 122 / 308)
    assert found.rate_at(7) is None
    assert acceptance_of({"generation_tokens_total": 5.0}) is None
    assert acceptance_of(None) is None
