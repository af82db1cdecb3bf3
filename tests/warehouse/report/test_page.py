import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench.errors import UsageError
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import whole_night
from tests.warehouse.report.night.test_pictures import ORDER
from tests.warehouse.trends.judgements import EVENT, write_judgement
from warehouse.judging.expectations import checks
from warehouse.load import LoadSummary, load_night
from warehouse.report.latencies import Bar, percentile_chart
from warehouse.report.page import write_report

NAMESPACE = "http://www.w3.org/2000/svg"  # names the format of a picture and is never asked for
VOID = {"wbr", "meta", "br", "link"}


class Balance(HTMLParser):
    """Collects what a page refers to, and fails on a tag that is closed out of turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(loaded: tuple[Path, LoadSummary]) -> str:
    return write_report(loaded[0], NIGHT).read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    found = Balance()
    found.feed(page)

    assert found.open == []
    own = ["index.html", f"data-docs/{NIGHT}.html"]
    assert [one for one in found.references if not one.startswith("data:")] == own
    assert re.findall(r"https?:|//|@import|url\(", page.replace(NAMESPACE, "")) == []


def test_what_came_from_outside_is_escaped(page: str) -> None:
    assert "&lt;b&gt;out of memory&lt;/b&gt;" in page
    assert "<b>out of memory" not in page


def test_the_page_shows_every_run_with_its_verdict_in_colour(page: str) -> None:
    for verdict in ("accepted", "suspect", "failed", "not-run"):
        assert f"<td class='{verdict}'>{verdict}</td>" in page


def test_the_page_shows_every_check_and_the_sentence_of_a_finding(page: str) -> None:
    assert all(f"<td>{check.code}</td>" in page for check in checks())
    assert "<td class='sentence'>2.5% of the requests failed" in page


def test_a_missing_value_is_a_dash_and_never_a_zero(page: str) -> None:
    row = next(row for row in page.split("<tr>") if "never" in row and "not-run" in row)

    assert "<span class='missing'>" in row
    assert ">0<" not in row.split("not-run")[1]


def test_the_page_begins_with_the_verdict_and_its_pictures_are_in_order(page: str) -> None:
    assert "<p class='line'>Of 6 runs, " in page.partition("<h2>")[0]
    assert re.findall(r"<h2>(.*?)</h2>", page)[: len(ORDER)] == [one.replace("'", "&#39;") for one in ORDER]


def test_findings_are_listed_by_the_names_of_scenarios(page: str) -> None:
    table = page.partition("<h2>Findings</h2>")[2].partition("</table>")[0]

    assert table.index("<th scope='col' title='scenario'>scenario</th>") < table.index("<td>chat</td>")


def test_the_index_links_every_night(loaded: tuple[Path, LoadSummary], page: str) -> None:
    assert page
    assert f"href='{NIGHT}.html'" in (loaded[0] / "reports" / "index.html").read_text(encoding="utf-8")


def test_writing_the_page_again_gives_the_same_bytes(loaded: tuple[Path, LoadSummary], page: str) -> None:
    assert write_report(loaded[0], NIGHT).read_text(encoding="utf-8") == page


def test_a_night_that_is_not_loaded_has_no_report(loaded: tuple[Path, LoadSummary]) -> None:
    with pytest.raises(UsageError, match="is not loaded"):
        write_report(loaded[0], "2099-01-01")


def test_a_chart_of_nothing_is_nothing() -> None:
    assert percentile_chart("TTFT", []) == ""


def test_a_bar_without_a_tail_has_no_whisker() -> None:
    assert "whisker" not in percentile_chart("TTFT", [Bar("chat", 20.0, None, None)])


def test_the_page_begins_with_what_was_said_of_its_series(tmp_path: Path) -> None:
    whole_night(tmp_path, "2026-03-01T010000Z")
    write_judgement(tmp_path, "2026-03-01T010000Z")
    load_night(tmp_path, "2026-03-01T010000Z")

    page = write_report(tmp_path, "2026-03-01T010000Z").read_text()

    said = page.partition("<h2>Results</h2>")[0]
    assert "1 series: 1 confirmed · " in said
    assert "only engine_version changed from 0.12.0 to 0.13.0" in said
    assert "<li><b>tpot_p50_ms +10.2 %</b> [+8.1, +12.3], worse, <b class='confirmed'>confirmed</b>" in said
    assert f"nightbench acknowledge {EVENT}" in said
