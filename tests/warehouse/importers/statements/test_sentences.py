"""Sentences that compare are computed again from the tables of their page; what is not surely read is named."""

import pytest

from tests.warehouse.importers.reading import alarms, claims_of

TABLE = """
| Model | GPU | TP | Precision | ISL | OSL | Concurrency | Output tok/s | Mean TTFT (ms) |
|---|---|---|---|---|---|---|---|---|
| Llama-3.1-70B-Instruct | MI300X | 8 | FP8 | 1024 | 1024 | 8 | 300 | 90 |
| Llama-3.1-70B-Instruct | MI300X | 8 | FP8 | 1024 | 1024 | 128 | 3400 | 400 |
| Llama-3.1-70B-Instruct | H100 SXM | 8 | FP8 | 1024 | 1024 | 8 | 200 | 100 |
| Llama-3.1-70B-Instruct | H100 SXM | 8 | FP8 | 1024 | 1024 | 128 | 2000 | 500 |
"""


def doubted(sentence: str) -> list[str]:
    return [alarm for alarm in alarms(claims_of("page.md", f"# R\n\n{sentence}\n{TABLE}")) if "is a ratio of" in alarm]


def unread(sentence: str) -> list[str]:
    claims = claims_of("page.md", f"# R\n\n{sentence}\n{TABLE}")
    return [each.why for claim in claims for each in claim.not_read if each.what == "sentence"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("up to 1.7x higher output throughput than H100 SXM", "up to 1.9x higher output throughput than H100 SXM"),
        ("1.5x higher throughput than H100 SXM at 8 users", "1.7x higher throughput than H100 SXM at 8 users"),
        ("+50 % more tokens/s than H100 SXM at 8 users", "+60 % more tokens/s than H100 SXM at 8 users"),
        ("20% lower TTFT than H100 SXM at concurrency 128", "30% lower TTFT than H100 SXM at concurrency 128"),
        ("1.6x higher throughput than H100 SXM", "2.1x higher throughput than H100 SXM"),
    ],
)
def test_a_ratio_that_no_rows_give_is_named(right: str, wrong: str) -> None:
    assert (doubted(f"MI300X has {right}."), unread(f"MI300X has {right}.")) == ([], [])
    assert len(doubted(f"MI300X has {wrong}.")) == 1


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("MI300X is 2x faster than H100 SXM.", "it names no metric"),
        ("MI300X has 2x higher throughput and 3x lower TTFT than H100 SXM.", "it has several ratios"),
        ("Throughput is 2x higher.", "it does not say what is compared with what"),
        ("MI300X could have 2x higher throughput than H100 SXM.", "it states no measurement"),
        ("Our fork has 2x higher throughput than upstream.", "it names no two configurations of the tables"),
    ],
)
def test_a_sentence_that_is_not_surely_read_is_named_with_the_reason(sentence: str, why: str) -> None:
    assert (unread(sentence), doubted(sentence)) == ([why], [])


def test_sentences_in_scripts_tables_and_code_are_none_of_the_page() -> None:
    wrong = "MI300X has 9x higher throughput than H100 SXM."

    assert (doubted(f"<script>{wrong}</script>"), doubted(f"```\n{wrong}\n```")) == ([], [])


def test_rows_that_differ_in_more_than_what_is_compared_give_no_ratio() -> None:
    other = TABLE.replace("| H100 SXM | 8 |", "| H100 SXM | 4 |")
    claims = claims_of("page.md", f"# R\n\nMI300X has 9x higher throughput than H100 SXM.\n{other}")

    assert [each.why for claim in claims for each in claim.not_read] == [
        "its rows differ in more than what it compares"
    ]
