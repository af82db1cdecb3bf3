"""Each line of the page of what happens at 3 a.m. is what a played night does, or names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.what_if.cases import CASES
from tests.what_if.lines import LINES, PLAYED, QUIET_USD, SITUATIONS, Line
from tests.what_if.page import PAGE, ROOT, lines_of, page
from tests.what_if.play import Case, play

EXPECTED = {line.expected.case: line.expected for line in LINES if line.expected is not None}
TEST_ID = re.compile(r"(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)(?:\[(?P<case>[^]]+)\])?")


@cache
def functions_of(file: Path) -> set[str]:
    """The names of the test functions of a file, without importing it."""
    tree = ast.parse(file.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def missing(lines: tuple[Line, ...]) -> list[str]:
    """What these lines name and nothing runs."""
    return [test for line in lines for test in line.runs if not _exists(test)]


def _exists(test: str) -> bool:
    named = TEST_ID.fullmatch(test)
    if named is None or not (ROOT / named["file"]).exists() or named["name"] not in functions_of(ROOT / named["file"]):
        return False
    return not test.startswith(PLAYED) or named["case"] in CASES


@pytest.mark.parametrize("case", CASES)
def test_a_line_is_what_happens(case: str, tmp_path: Path) -> None:
    expected = EXPECTED[case]

    facts = play(CASES[case], tmp_path / "night")

    found = (facts.exit_code, facts.rows, facts.machines)
    assert found == (expected.exit_code, expected.rows, expected.machines), facts
    assert facts.usd <= expected.most_usd <= facts.usd * 1.1 + 0.1, facts
    if expected.most_min is not None:
        assert facts.billed_min is not None, "it is billed still"
        assert facts.billed_min <= expected.most_min <= facts.billed_min * 1.1 + 1, facts
    for words in expected.says:
        assert words in facts.said, facts


def test_a_night_in_which_nothing_goes_wrong_costs_what_the_page_says(tmp_path: Path) -> None:
    facts = play(Case(), tmp_path / "night")

    assert (facts.exit_code, facts.rows, facts.machines) == (0, "2 measured", 1)
    assert facts.usd <= QUIET_USD <= facts.usd + 0.1, facts


def test_every_test_that_a_line_names_exists() -> None:
    assert missing(LINES) == []


def test_every_situation_has_a_line_and_every_line_a_test() -> None:
    assert [situation for situation in SITUATIONS if not lines_of(situation)] == []
    assert [line.when for line in LINES if not line.runs] == []
    assert {line.situation for line in LINES} == set(SITUATIONS)


def test_every_case_that_is_played_has_one_line() -> None:
    assert sorted(EXPECTED) == sorted(CASES)
    assert len(EXPECTED) == sum(line.expected is not None for line in LINES)


def test_a_test_that_does_not_exist_is_noticed() -> None:
    words = ("disk", "when", "does", "keeps", "bills", "tells")
    named = ("tests/nowhere.py::test_a", "tests/what_if/test_what_if.py::test_b", f"{PLAYED}[nothing]", "in prose")

    assert missing((Line(*words, tests=named),)) == list(named)


def test_the_page_is_what_the_lines_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `.venv/bin/python -m tests.what_if`"
