"""The site as files: its addresses, its links, and what it says of histories and of nights."""

import csv
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

from bench.errors import LoadIntoWarehouseError
from tests.warehouse.conftest import NIGHT
from tests.warehouse.report.test_page import Balance
from tests.warehouse.site.conftest import Grown
from warehouse.load import LoadSummary
from warehouse.site.names import series_page
from warehouse.site.write import write_site

PAGES = ("index.html", "compare.html", "cost.html", "trust.html", "night/index.html", "series/index.html")


def _page_of(site: Path, series: str, source: str = "odd") -> str:
    return (site / "series" / f"{series_page(source, series)}.html").read_text()


@pytest.mark.parametrize("which", ["site", "own"])
def test_every_link_of_every_page_is_relative_and_leads_to_a_file(which: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(which)
    assert all((folder / page).exists() for page in PAGES)
    ours = [path for path in folder.rglob("*.html") if path.parent.name != "data-docs"]
    for path in ours:
        page = Balance()
        page.feed(path.read_text())
        assert page.open == [], path
        for reference in page.references:
            assert reference.startswith("data:") or (path.parent / unquote(reference)).is_file(), (path.name, reference)
        assert re.findall(r"(?:src|href)='(?:https?:)?//|@import|url\(", path.read_text()) == []


def test_the_page_of_a_night_links_great_expectations_own_page_of_it(own: Path) -> None:
    linked = own / "night" / f"data-docs/{NIGHT}.html"

    assert f"href='data-docs/{NIGHT}.html'" in (own / "night" / f"{NIGHT}.html").read_text()
    assert "Expectation" in linked.read_text()


def test_a_team_with_histories_only_reads_what_changed_since_when_and_why(site: Path) -> None:
    page = (site / "index.html").read_text()

    assert "9 series from 2 imported histories; no own night yet." in page
    assert re.search(r"Since 2026-01-31.*Cause: host", page)
    assert "nightbench acknowledge" in page


def test_a_series_shows_its_nights_its_levels_and_its_change(site: Path) -> None:
    page = _page_of(site, "Base_A/text", "example/suite@results")

    assert "40 nights, level since 2026-01-21" in page
    assert '"changes":[{"at":"2026-01-21' in page
    assert "SELECT * FROM history_points WHERE source = &#39;example/suite@results&#39;" in page


def test_the_csv_of_a_series_has_each_night(site: Path) -> None:
    with (site / "series" / f"{series_page('odd', 'gaps')}.csv").open() as file:
        rows = list(csv.DictReader(file))

    assert [(row["measured_at"][:10], row["is_valid"], row["value"]) for row in rows] == [
        ("2026-02-01", "True", "50.0"),
        ("2026-02-02", "False", ""),
        ("2026-02-20", "True", "51.0"),
    ]


def test_a_name_with_html_is_text(site: Path) -> None:
    page = _page_of(site, "</script><b>name</b>")

    assert "<h1>&lt;/script&gt;&lt;b&gt;name&lt;/b&gt;</h1>" in page
    assert "<b>name" not in page
    assert "1 night, level since 2026-02-01: 50." in page


def test_a_night_without_a_value_is_hollow_and_a_gap_stays_one(site: Path) -> None:
    page = _page_of(site, "gaps")

    assert "2 nights, 1 without a valid value" in page
    assert '"invalid":[{"at":"2026-02-02' in page


def test_a_series_of_failures_only_says_so(site: Path) -> None:
    assert "0 nights, 1 without a valid value." in _page_of(site, "failures only")


def test_the_scripts_are_one_file_for_all_pages(site: Path) -> None:
    vega, *others = sorted(path.name for path in (site / "assets").iterdir())[::-1]

    assert vega.startswith("vega-")
    assert others == ["save.js", "draw.js", "age.js"]
    assert sum("<figure data-chart" in path.read_text() for path in site.rglob("*.html")) > 3
    assert all(path.stat().st_size < 100_000 for path in site.rglob("*.html"))


def test_a_chart_is_one_picture_with_its_name_for_a_screen_reader(site: Path) -> None:
    page = _page_of(site, "gaps")

    said = "2 nights, 1 without a valid value, level since 2026-02-01: 50.5."
    assert f"<div role='img' aria-label='value (tok/s): {said}'><div class='chart' aria-hidden='true'>" in page


def test_an_own_night_has_its_line_its_page_and_its_pareto(own: Path) -> None:
    page = (own / "index.html").read_text()

    assert f"<a href='night/{NIGHT}.html'>Night {NIGHT}</a>: " in page
    assert "1 failed" in page
    assert "data-chart='pareto'" in page
    assert "data-chart='cost'" in page
    assert (own / "night" / f"{NIGHT}.html").exists()


@pytest.mark.parametrize("which", ["site", "own"])
def test_every_page_says_of_when_its_data_is(which: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(which)
    pages = [path for path in folder.rglob("*.html") if path.parent.name != "data-docs" and path.stem != "2020-01-01"]

    assert len(pages) > 5
    for page in pages:
        said = re.search(r"Data of <time datetime='([^']+)'>", page.read_text())
        assert said is not None, page
        assert datetime.fromisoformat(said[1]).tzinfo is not None
        assert "assets/age.js'></script>" in page.read_text()


def test_writing_the_site_again_changes_no_file_and_keeps_other_pages(
    loaded: tuple[Path, LoadSummary], own: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*") if path.is_file()}
    write_site(loaded[0], own)

    assert {path: path.stat().st_mtime_ns for path in own.rglob("*") if path.is_file()} == before
    assert "2020-01-01.html" in (own / "night" / "index.html").read_text()


def test_a_further_night_adds_its_page_and_keeps_every_address(grown: Grown) -> None:
    after = {str(path.relative_to(grown.site)) for path in grown.site.rglob("*.html")}

    assert after - set(grown.before) == {f"night/{grown.newest}.html"}
    assert set(grown.before) <= after
    assert f"<a href='{grown.newest}.html'>" in (grown.site / "night" / "index.html").read_text()
    assert grown.newest not in grown.before["index.html"]
    assert f"night/{grown.newest}.html" in (grown.site / "index.html").read_text()


def test_nights_that_cost_nothing_have_a_sentence_instead_of_a_chart_of_prices(grown: Grown) -> None:
    page = (grown.site / "index.html").read_text()

    assert "data-chart='pareto'" in page
    assert "data-chart='cost'" not in page
    assert "These nights cost nothing, so no price is drawn." in page


def test_an_empty_warehouse_says_what_to_do(tmp_path: Path, site: Path) -> None:
    out = tmp_path / "site"
    (out / "assets").mkdir(parents=True)
    vega = next((site / "assets").glob("vega-*.js"))
    (out / "assets" / vega.name).write_bytes(vega.read_bytes())
    (tmp_path / "data").mkdir()
    write_site(tmp_path / "data", out)

    assert "The warehouse is empty" in (out / "index.html").read_text()
    assert all((out / page).exists() for page in PAGES)


def test_a_folder_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "site").write_text("a file")

    with pytest.raises(LoadIntoWarehouseError, match="site"):
        write_site(tmp_path / "data", tmp_path / "site")


def test_without_the_script_of_its_charts_a_site_has_no_start_page(
    loaded: tuple[Path, LoadSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(subprocess.CalledProcessError):
        write_site(loaded[0], tmp_path)

    assert not (tmp_path / "index.html").exists()
