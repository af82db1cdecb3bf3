"""Every published table of the works is listed, and what the list names exists."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench.machine.of_target import own_machines
from catalog.read import read_work_tables, read_works
from infra.loadgen.suite_file import parse_suite_file
from tests.warehouse.importers.reading import SHARED
from warehouse.suite_report.work_columns import missing_columns
from warehouse.suite_report.works_page import PAGE, page, share_of_results

ROOT = Path(__file__).parents[2]
FACTS = SHARED.parent / "facts" / "works.md"
TABLES = read_work_tables()


def test_the_page_of_works_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m warehouse.suite_report.works_page`"


def test_each_table_that_runs_again_names_a_table_of_a_suites_report() -> None:
    titles = {
        one.suite: {table.title for table in parse_suite_file(ROOT / "suites" / f"{one.suite}.toml")[0].report.tables}
        for one in read_works()
    }

    missing = [(one.work, one.number) for one in TABLES if one.suite and one.report not in titles[one.suite]]
    assert missing == []
    assert {one.suite for one in TABLES if one.suite} == set(titles)


def test_each_table_of_results_that_a_report_has_shows_all_columns_of_the_published_one() -> None:
    results = [one for one in TABLES if one.kind == "result" and one.report]

    assert {(one.work, one.number): missing for one in results if (missing := missing_columns(one))} == {}


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("tok/s=output_throughput_tok_per_s; watts=gpu_power; purpose=", ["watts", "purpose"]),
        ("USD=Cost/usd_per_hour; other=No such table/usd_per_hour; ours=usd_per_hour", ["other", "ours"]),
    ],
)
def test_a_column_that_no_table_of_the_report_has_is_missing(columns: str, missing: list[str]) -> None:
    throughput = next(one for one in TABLES if (one.work, one.number) == ("llama-70b-mi300x", "T05"))

    assert missing_columns(replace(throughput, columns=columns)) == missing


def test_a_table_with_rows_that_do_not_run_again_says_why() -> None:
    again = {(one.work, one.number): one.machine_rows + one.own_rows for one in TABLES}
    assert [key for one in TABLES if again[key := (one.work, one.number)] < one.rows and not one.lacks] == []
    assert [key for one in TABLES if max(again[key := (one.work, one.number)], one.local_rows) > one.rows] == []


def test_a_table_with_rows_for_a_host_of_your_own_has_a_suite_with_such_machines() -> None:
    suites = {one.suite for one in TABLES if one.own_rows}
    assert suites
    for name in suites:
        suite, _ = parse_suite_file(ROOT / "suites" / f"{name}.toml")
        assert len(own_machines(suite)) == sum(one.own_rows for one in TABLES if one.suite == name)


def test_at_least_95_of_100_rows_of_results_run_again_on_rented_machines() -> None:
    assert share_of_results(TABLES) >= 0.95


@pytest.mark.skipif(not FACTS.exists(), reason="../shared/facts is not here")
def test_every_published_table_is_listed_with_its_rows() -> None:
    text = FACTS.read_text("utf-8")
    stated = {
        cells[0]: (_sum(cells[4]), _sum(cells[5]))
        for line in text.splitlines()
        if (cells := [cell.strip() for cell in line.strip("|").split("|")])[0] in {one.work for one in read_works()}
    }

    numbers = Counter(one.work for one in TABLES)
    rows = {work: sum(one.rows for one in TABLES if one.work == work) for work in numbers}
    assert {work: (numbers[work], rows[work]) for work in numbers} == stated
    sections = re.split(r"^# \d{3} · ([\w.-]+)|^# ", text, flags=re.MULTILINE)
    named = {
        (work, number)
        for work, section in zip(sections[1::2], sections[2::2], strict=True)
        if work in stated
        for number in re.findall(r"\*\*(?:\d{3}-)?([TF]\d\d)\*\*", section)
    }
    assert named <= {(one.work, one.number) for one in TABLES}


def _sum(cell: str) -> int:
    """The count that a cell begins with: `36: 0 in ...`, `20 + 10 bars`, `47 (8 throughput)`."""
    return sum(map(int, re.findall(r"\d+", re.split(r"[(:,]", cell)[0])))


# The kinds of tables with numbers of a load, whose lengths and counts a reader compares with the source's.
OF_LOADS = {"scenarios", "levels", "peaks", "variants", "searches"}


def test_each_table_of_a_phase_of_the_study_says_which_terms_are_printed_derived_or_a_guess() -> None:
    study, _ = parse_suite_file(ROOT / "suites" / "mi325x-study.toml")
    tables = [table for table in study.report.tables if table.kind in OF_LOADS]

    assert [
        table.title for table in tables if not re.search("are printed|derived from|derived as|guess", table.note)
    ] == []
    phases = {one.name.partition("/")[0].partition("@")[0] for one in study.expand()}
    assert [one for one in phases if not any(one.startswith(table.only) for table in tables if table.only)] == ["sweep"]
    assert any(table.kind == "searches" for table in tables)


def test_the_guessed_version_of_an_image_is_marked_in_the_page_of_works_and_in_each_table_that_has_it() -> None:
    post, _ = parse_suite_file(ROOT / "suites" / "llama-4-mi300x-h200.toml")
    guessed = [one.name for one in post.expand() if one.engine.version == "0.8.4"]
    has_it = [
        table
        for table in post.report.tables
        if table.kind in {"scenarios", "setup", "machine_pair_means"}
        and any(one.startswith(table.only) for one in guessed)
    ]

    assert len(guessed) == 2 * 5
    assert [table.title for table in has_it if "0.8.4" not in table.note or "unverified" not in table.note] == []
    (chart,) = (one.lacks or "" for one in TABLES if (one.work, one.number) == ("llama-4", "F01"))
    assert "0.8.4, is unverified" in chart
