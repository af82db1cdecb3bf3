"""The report of a published work that was run as a miniature on this computer, by its numbers and in a browser."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.loadgen.suite_file import make_night, parse_suite_file
from nights.durable import write_text
from tests.warehouse.folders import Shape, write_run
from tests.warehouse.site.test_browser import CHROMIUM
from warehouse.load import load_night
from warehouse.suite_report.build import build_report
from warehouse.suite_report.formats import to_html
from warehouse.suite_report.table import SuiteReport

SUITE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
# Writes into the page how many of its tables are wider than the window.
COUNT = """<script>document.body.dataset.wide = [...document.querySelectorAll(".wide")].filter(
  (one) => one.scrollWidth > one.clientWidth).length</script>"""
SCENARIO = "2048-in-2048-out"
METRIC = "output_throughput_tok_per_s"


@pytest.fixture(scope="module")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with a night of a published work on this computer, of which one run was measured."""
    data = tmp_path_factory.mktemp("miniature")
    night = make_night(SUITE, "local", poc=False, is_draft=True)
    write_text(data / "runs" / night.night / "night.json", night.model_dump_json())
    run = next(run for run in night.runs if run.scenario.name == SCENARIO)
    write_run(data, night, run, Shape(requests=40, tokens=run.scenario.workload.osl))
    load_night(data, night.night)
    return data, night.night


@pytest.fixture
def report(miniature: tuple[Path, str]) -> SuiteReport:
    return build_report(miniature[0], parse_suite_file(SUITE)[0], miniature[1])


def test_a_miniature_says_what_it_is_before_anything_else_and_shows_no_price(report: SuiteReport) -> None:
    columns = {name for table in report.tables for row in table.rows for name in row}

    assert report.title.endswith(": a miniature on this computer")
    assert report.notes[0].startswith("This is a miniature of the published work")
    shown = {str(value) for table in report.tables for row in table.rows for value in row.values()}
    assert [name for name in columns | shown if re.search("usd|cost|price", name, re.IGNORECASE)] == []


def test_a_miniature_names_the_load_that_ran_and_has_the_published_number_behind_its_own(report: SuiteReport) -> None:
    row = next(row for row in report.tables[0].rows if row["scenario"] == SCENARIO)
    names = list(row)

    assert row["load"] == "41 in, 41 out, concurrency 1"
    assert names[names.index("runs") :][:5] == ["runs", METRIC, f"{METRIC}_low", f"{METRIC}_high", "published"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install Debian's package chromium")
def test_the_page_of_a_miniature_fits_a_window_of_1280_pixels(report: SuiteReport, tmp_path: Path) -> None:
    rows = tuple(row | _measured(row) for row in report.tables[0].rows)
    page = to_html(replace(report, tables=(replace(report.tables[0], rows=rows), *report.tables[1:])))
    path = tmp_path / "page.html"
    path.write_text(str(page).replace("</body>", f"{COUNT}</body>"))
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1080", "--dump-dom")
    shown = subprocess.run([str(CHROMIUM), *flags, path.as_uri()], check=True, capture_output=True, text=True).stdout

    assert "[1,204.6, 1,264.6]" in shown
    assert 'data-wide="0"' in shown


def _measured(row: dict[str, Any]) -> dict[str, Any]:
    """Values as of a measured scenario in place of those that are missing, and the terms that differ."""
    numbers = {"": 1234.567, "_low": 1204.567, "_high": 1264.567}
    metrics = [name.removesuffix("_low") for name in row if name.endswith("_low")]
    found = {f"{metric}{end}": number for metric in metrics for end, number in numbers.items()}
    terms = (
        "not compared; precision: fp8 published, fp32 here; GPU: MI300X published, none here; isl: 9 published, 4 here"
    )
    return found | {"verdict": "accepted", "terms": terms}
