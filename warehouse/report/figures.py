"""Charts on a page, each with its data as CSV and the query behind it, and with buttons for a picture."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from warehouse.schema.row import Row

Picture = Callable[["Chart"], str]


@dataclass(frozen=True)
class Chart:
    """A chart of one kind; `name` is that of its files, `said` its numbers in words, `datasets` the rows it draws."""

    kind: str
    name: str
    title: str
    said: str
    datasets: Mapping[str, Sequence[Row]]


@cache
def save_script() -> str:
    """The script behind the buttons that save a chart."""
    return Path(__file__).with_name("save.js").read_text(encoding="utf-8")


def in_browser(_chart: Chart) -> str:
    """No picture yet: the page's script draws the chart from its data when it comes into view."""
    return ""


def drawn(chart: Chart) -> str:
    """The picture of a chart as SVG, for a page that needs no script to be read."""
    from warehouse.report.charts import svg_of  # noqa: PLC0415 - takes a second, and most nights have no trend yet

    return svg_of(chart.kind, _json(chart.datasets))


def chart_html(chart: Chart, below: str, picture: str = "") -> str:
    """A chart under its title, with buttons for a picture; `below` has its data in words, as SQL and as CSV.

    Without a picture the page's script draws it.
    """
    name, title = escape(chart.name), escape(chart.title)
    buttons = "".join(
        f"<button type='button' data-kind='{kind}' aria-label='{kind.upper()} of {title}'>{kind.upper()}</button> "
        for kind in ("svg", "png")
    )
    to_draw, data = "", ""
    if not picture:
        to_draw = f" data-chart='{chart.kind}'"
        data = f"<script type='application/json'>{inert(_json(chart.datasets))}</script>"
    return (
        f"<figure{to_draw} data-name='{name}'><figcaption>{title}</figcaption>"
        f"<div role='img' aria-label='{title}: {escape(chart.said)}'>"
        f"<div class='chart' aria-hidden='true'>{picture}</div></div>"
        f"{data}<div class='more'>{buttons}{below}</div></figure>"
    )


def csv_of(name: str, rows: Sequence[Row]) -> str:
    """A link that holds its rows as CSV, for a page of one file."""
    address = f"data:text/csv;charset=utf-8,{quote(csv_text(rows), safe='')}"
    return f"<a href='{address}' download='{escape(name)}.csv'>CSV</a>"


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV with the names of their columns; a text that a spreadsheet would run begins with an apostrophe."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_safe(value) for value in row.values()] for row in rows)
    return target.getvalue()


def csv_link(address: str, words: str = "CSV") -> str:
    """A link to a CSV file of the site."""
    return f"<a href='{escape(address)}' download>{escape(words)}</a>"


def _safe(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def inert(text: str) -> str:
    """JSON that a page can hold: no text of it can end the script that holds it."""
    return text.replace("<", "\\u003c")


def _json(datasets: Mapping[str, Sequence[Row]]) -> str:
    return json.dumps(datasets, default=_plain, separators=(",", ":"))
