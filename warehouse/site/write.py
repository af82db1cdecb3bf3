"""Write the site: its pages, among them one for each night and each series, and its files for programs.

Addresses stay: a page that was written keeps its name, and no page is deleted.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.lake.database import opened_once, these_nights_alone
from warehouse.lake.lake import writing
from warehouse.lake.query import ask
from warehouse.report.checks import write_docs
from warehouse.report.figures import csv_link, csv_text, in_browser, save_script
from warehouse.report.markup import NOTHING, answered, joined, page_links, section, sql_html
from warehouse.report.night_trends import read_trends
from warehouse.report.page import night_body
from warehouse.report.vega import VEGA, vega_script_meanwhile
from warehouse.site.age import AGE, age_script, data_of_night
from warehouse.site.atom import Notice
from warehouse.site.comparisons import write_comparisons
from warehouse.site.contents import read_contents
from warehouse.site.names import series_address_from_folder
from warehouse.site.pages import DRAW, SAVE, page_html
from warehouse.site.program_files import write_program_files
from warehouse.site.questions import COMPARE, COST, TRUST, Question
from warehouse.site.releases import releases_html
from warehouse.site.series_pages import write_series
from warehouse.site.start_page import start_body

NEWEST = 3  # nights whose pages are written again; older pages stay as they are
NIGHT_PAGES = 30  # newest nights that get a page where they have none: each takes half a second
PANELS = 6  # on the start page
_PAGES = {"compare": ("Compare", COMPARE), "cost": ("Cost", COST), "trust": ("Trust", TRUST)}


@dataclass(frozen=True)
class Site:
    """The written site: its start page, and how many series and nights it has."""

    index: Path
    series_count: int
    night_count: int


def write_site(data: Path, out: Path, night_pages: int = NIGHT_PAGES, notices: Sequence[Notice] = ()) -> Site:
    """Write the site of a data folder, with pages of so many newest nights; a bucket can serve it as it is.

    `notices` are what was reported of the nights, for the feed. Raises LoadIntoWarehouseError if a file cannot be
    written.
    """
    with writing(out), opened_once(data), _vega(out / "assets") as vega:
        contents = read_contents(data, notices)
        nights, newest = contents.nights, contents.newest
        listed = write_series(data, out, contents.changes, PANELS)
        _write_nights(data, out, nights[:night_pages], newest)
        compared = write_comparisons(data, out, newest)
        for name, (title, questions) in _PAGES.items():
            body = _compared(compared) + releases_html(data, out) if name == "compare" else NOTHING
            body += joined(_answer(data, out, one) for one in questions)
            write_if_changed(out / f"{name}.html", page_html(data, f"{name}.html", title, body, newest))
        _write_scripts(out / "assets", vega)  # before the start page, which says that all the rest is there
        write_program_files(data, out, contents)
        body = start_body(data, out, contents, listed, compared)
        write_if_changed(out / "index.html", page_html(data, "index.html", "Nightbench", body, newest))
    return Site(out / "index.html", len(listed.rows), len(nights))


def _write_nights(data: Path, out: Path, nights: Sequence[str], newest: datetime | None) -> None:
    folder = out / "night"
    wanted = [night for at, night in enumerate(nights) if at < NEWEST or not (folder / f"{night}.html").exists()]
    trends = read_trends(data, wanted)
    with these_nights_alone(data, wanted):
        for night in wanted:
            docs = write_docs(data, night, folder)
            body = night_body(data, night, in_browser, series_address_from_folder, docs, trends)
            page = page_html(data, f"night/{night}.html", f"Night {night}", body, data_of_night(data, night))
            write_if_changed(folder / f"{night}.html", page)
    written = sorted((path.stem for path in folder.glob("*.html") if path.stem != "index"), reverse=True)
    body = page_links(written) if written else Markup("<p>No own night is in the warehouse.</p>")
    write_if_changed(folder / "index.html", page_html(data, "night/index.html", "Nights", body, newest))


def _compared(links: Markup) -> Markup:
    return section("Nights, images and machines", links) if links else NOTHING


def _vega(assets: Path) -> AbstractContextManager[Callable[[], str] | None]:
    """What puts Vega together during a block, where it was not written yet: its name has its version."""
    return nullcontext() if (assets / VEGA).exists() else vega_script_meanwhile()


def _write_scripts(assets: Path, vega: Callable[[], str] | None) -> None:
    write_if_changed(assets / DRAW, Path(__file__).with_name(DRAW).read_text(encoding="utf-8"))
    write_if_changed(assets / SAVE, save_script())
    write_if_changed(assets / AGE, age_script())
    if vega is not None:
        write_if_changed(assets / VEGA, vega())


def _answer(data: Path, out: Path, question: Question) -> Markup:
    """A section with the answer; its CSV is written beside."""
    rows = ask(data, question.sql).dicts()
    address = f"data/{question.name}.csv"
    write_if_changed(out / address, csv_text(rows))
    lead = question.lead if rows else Markup("{}").format(question.none)
    return answered(question.title, lead, rows, (csv_link(address) if rows else NOTHING) + sql_html(question.sql))
