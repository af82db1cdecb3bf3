"""Messages read as a person would write them."""

import pytest

from bench.audit.evidence.evidence import Observed
from bench.audit.judge import sentence_of
from bench.audit.rules import RULES, Rule
from bench.wording import counted, shown, written_out


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a token costs 1e+03 times", "a token costs 1000 times"),
        ("TPOT 2.24465e-05 s", "TPOT 0.0000224465 s"),
        ("off by -1.5e+06 J", "off by -1500000 J"),
        ("3e+300 s", "3e+300 s"),  # no ordinary size
        ("commit 1e+03f and v1e+03", "commit 1e+03f and v1e+03"),
    ],
)
def test_a_number_of_ordinary_size_has_no_exponent(text: str, read: str) -> None:
    assert written_out(text) == read


def test_one_is_not_several() -> None:
    assert [counted(count, "request") for count in (0, 1, 2.0)] == ["0 requests", "1 request", "2 requests"]
    assert counted(1, "energy", "energies") == "1 energy"
    assert counted(float("inf"), "value") == "inf values"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.column)
def test_every_sentence_reads_well_of_one_and_of_several(rule: Rule) -> None:
    said = [sentence_of(rule, Observed(value)) for value in (1.0, 3.0, 1234.5, 1e-5)]

    assert not [text for text in said if "{" in text or "|" in text or "#" in text or "e+" in text or "e-0" in text]
    if "#" in rule.sentence:
        assert said[0].partition("1")[2] != said[1].partition("3")[2]


def test_a_page_shows_the_words_of_several() -> None:
    assert shown("{value:#value|values} cannot be") == "{value} values cannot be"
