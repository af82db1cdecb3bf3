"""The page of findings says what the rules say, and every rule says where its bounds are from."""

import pytest

from bench.audit.rules import RULES, Rule
from warehouse.report.findings_page import PAGE, page


def test_the_page_of_findings_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.column)
def test_every_rule_says_where_its_bounds_are_from(rule: Rule) -> None:
    assert rule.origin


def test_no_two_rules_judge_one_column() -> None:
    columns = [rule.column for rule in RULES]

    assert sorted(columns) == sorted(set(columns))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.tolerated], ids=lambda rule: rule.column)
def test_what_is_tolerated_holds_what_passes(rule: Rule) -> None:
    assert rule.tolerated is not None
    (low, high), (tolerated_low, tolerated_high) = rule.passing, rule.tolerated
    assert tolerated_low is None or (low is not None and tolerated_low <= low)
    assert tolerated_high is None or (high is not None and high <= tolerated_high)
