"""The page of verdicts by source is the one that is written from the tables and the audit."""

from pathlib import Path

import pytest

from bench.errors import UsageError
from tests.warehouse.importers.reading import OTHERS
from warehouse.suite_report.published_rows import SEEDS, judged_lines
from warehouse.suite_report.verdicts_page import PAGE, page

TWIN = Path(__file__).parents[2] / "data/published/others.csv"
WRITE = "run `python -m warehouse.suite_report.verdicts_page ../shared/data/published/others.csv`"
HEAD = "source,metric,value,unit,notes\n"


def test_the_page_has_the_verdicts_of_the_published_rows() -> None:
    written = set(PAGE.read_text().splitlines())

    of_seeds = {line for line in page([SEEDS]).splitlines() if "**all**" not in line}

    assert of_seeds <= written, WRITE


def test_each_source_of_another_table_has_its_verdicts_on_the_page() -> None:
    of_seeds, both = page([SEEDS]).splitlines(), page([SEEDS, TWIN]).splitlines()

    assert [line for line in both if line not in of_seeds] == [
        "| twin_vendor | 2 | 1 | 0 | 0 | 0 | 1 |",
        "| twin_provider | 4 | 3 | 0 | 1 | 0 | 0 |",
        "| twin_round | 2 | 0 | 2 | 0 | 0 | 0 |",
        "| twin_study | 2 | 1 | 0 | 0 | 1 | 0 |",
        "| twin_blog | 3 | 1 | 0 | 1 | 0 | 1 |",
        "| **all** | 225 | 65 | 30 | 21 | 4 | 105 |",
        "| twin_vendor |  |  |",
        "| twin_provider | `roofline_bandwidth` 1, `roofline_compute` 1 |  |",
        "| twin_round |  | `tokens_ambiguous` 2 |",
        "| twin_study |  |  |",
        "| twin_blog | `not_measured` 1 | `metric_ambiguous` 1 |",
    ]


def test_the_page_has_the_verdicts_of_the_other_tables() -> None:
    if not OTHERS.is_file():
        pytest.skip("../shared/data/published is not here: the page counts the rows of tables that are not ours")

    assert PAGE.read_text() == page([SEEDS, OTHERS]), WRITE


def test_every_line_of_a_claim_has_its_verdict(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    numbers = ("mean_ttft_ms,905.5,ms", "p50_ttft_ms,812.5,ms", "p90_ttft_ms,703.5,ms", "p99_ttft_ms,951.5,ms")
    table.write_text(HEAD + "".join(f"a report,{number},\n" for number in numbers))

    found = {one.line: one.verdict for one in judged_lines(table, dict.fromkeys(range(2, 6), "ttft"))}

    assert found == dict.fromkeys(range(2, 6), "rejected")


def test_a_table_without_sources_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("metric,value,unit\nmean_ttft_ms,900,ms\n")

    with pytest.raises(UsageError, match="no column source"):
        page([table])
