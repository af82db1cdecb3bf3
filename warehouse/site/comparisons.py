"""The pages that compare two nights, images or machines, with what is missing on each side."""

from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import NOTHING, joined
from warehouse.site.comparison import comparison_html, flat
from warehouse.site.names import page_name
from warehouse.site.pages import page_html
from warehouse.site.releases import MEASURED
from warehouse.trends.compare import Comparison
from warehouse.trends.usual_pairs import compare_usual

FOLDER = "compare"
_LINK = Markup("<li><a href='{}/{}.html'>{}</a>: {}</li>")


def write_comparisons(data: Path, out: Path, newest: datetime | None) -> Markup:
    """Write a page and a CSV for each pair; returns links to them for a page beside the folder."""
    links = []
    for pair, found in compare_usual(data):
        page = page_name(FOLDER, pair.name)
        _write_page(data, out / FOLDER / f"{page}.html", pair.title, found, newest)
        links.append(_LINK.format(FOLDER, page, pair.title, found.summary))
    return Markup("<ul>{}</ul>").format(joined(links)) if links else NOTHING


def _write_page(data: Path, page: Path, title: str, found: Comparison, newest: datetime | None) -> None:
    answer = found.answer()
    write_if_changed(page.with_suffix(".csv"), csv_text([flat(row) for row in answer["pairs"]]))
    body = comparison_html(f"{answer['b']} against {answer['a']}", answer, MEASURED, csv_link(f"{page.stem}.csv"))
    write_if_changed(page, page_html(data, f"{FOLDER}/{page.name}", title, body, newest))
