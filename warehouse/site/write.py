"""Write the site: index.html, compare.html, cost.html, trust.html, and a page for each night and each series.

Addresses stay: a page that was written keeps its name, and no page is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.lake.database import opened_once
from warehouse.lake.lake import writing
from warehouse.lake.query import ask
from warehouse.report.charts import VEGA, vega_script
from warehouse.report.checks import write_docs
from warehouse.report.figures import csv_link, csv_text, in_browser, save_script
from warehouse.report.markup import NOTHING, answered, joined, page_links, sql_html
from warehouse.report.page import night_body
from warehouse.site.names import series_address_from_folder
from warehouse.site.pages import DRAW, SAVE, page_html
from warehouse.site.questions import COMPARE, COST, TRUST, Question
from warehouse.site.releases import releases_html
from warehouse.site.series_pages import write_series
from warehouse.site.start_page import start_body

NEWEST = 3  # nights whose pages are written again; older pages stay as they are
NIGHT_PAGES = 30  # newest nights that get a page where they have none: each takes half a second
PANELS = 6  # on the start page
_CHANGES = "FROM changes WHERE kind <> 'new_method' AND state <> 'weak'"
_NIGHTS = "SELECT DISTINCT night FROM measurements ORDER BY night DESC"
_PAGES = {"compare": ("Compare", COMPARE), "cost": ("Cost", COST), "trust": ("Trust", TRUST)}


@dataclass(frozen=True)
class Site:
    """The written site: its start page, and how many series and nights it has."""

    index: Path
    series_count: int
    night_count: int


def write_site(data: Path, out: Path, night_pages: int = NIGHT_PAGES) -> Site:
    """Write the site of a data folder, with pages of so many newest nights; a bucket can serve it as it is.

    Raises LoadIntoWarehouseError if a file cannot be written.
    """
    with writing(out), opened_once(data):
        changes = ask(data, _CHANGES).dicts()
        listed = write_series(data, out, changes, PANELS)
        nights = [row[0] for row in ask(data, _NIGHTS).rows]
        _write_nights(data, out, nights[:night_pages])
        for name, (title, questions) in _PAGES.items():
            body = releases_html(data, out) if name == "compare" else NOTHING
            body += joined(_answer(data, out, one) for one in questions)
            write_if_changed(out / f"{name}.html", page_html(data, f"{name}.html", title, body))
        _write_scripts(out / "assets")
        body = start_body(data, out, changes, listed, nights)
        write_if_changed(out / "index.html", page_html(data, "index.html", "Nightbench", body))
    return Site(out / "index.html", len(listed.rows), len(nights))


def _write_nights(data: Path, out: Path, nights: Sequence[str]) -> None:
    for at, night in enumerate(nights):
        page = out / "night" / f"{night}.html"
        if at < NEWEST or not page.exists():
            docs = write_docs(data, night, page.parent)
            body = night_body(data, night, in_browser, series_address_from_folder, docs)
            write_if_changed(page, page_html(data, f"night/{night}.html", f"Night {night}", body))
    written = sorted((path.stem for path in (out / "night").glob("*.html") if path.stem != "index"), reverse=True)
    body = page_links(written) if written else Markup("<p>No own night is in the warehouse.</p>")
    write_if_changed(out / "night" / "index.html", page_html(data, "night/index.html", "Nights", body))


def _write_scripts(assets: Path) -> None:
    write_if_changed(assets / DRAW, Path(__file__).with_name(DRAW).read_text(encoding="utf-8"))
    write_if_changed(assets / SAVE, save_script())
    if not (assets / VEGA).exists():  # its name has its version
        write_if_changed(assets / VEGA, vega_script())


def _answer(data: Path, out: Path, question: Question) -> Markup:
    """A section with the answer; its CSV is written beside."""
    rows = ask(data, question.sql).dicts()
    address = f"data/{question.name}.csv"
    write_if_changed(out / address, csv_text(rows))
    lead = question.lead if rows else Markup("{}").format(question.none)
    return answered(question.title, lead, rows, (csv_link(address) if rows else NOTHING) + sql_html(question.sql))
