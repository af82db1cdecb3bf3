"""Parts of a page: a table with its SQL and its CSV, and a chart with its data for those who do not see it."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from warehouse.lake.durable import make_folder, replace_text
from warehouse.report.page import document, section, table_html
from warehouse.schema.row import Row
from warehouse.site.charts import VEGA, templates

DRAW = "draw.js"
_NAVIGATION = {
    "index.html": "Start",
    "series/index.html": "Series",
    "night/index.html": "Nights",
    "compare.html": "Compare",
    "cost.html": "Cost",
    "trust.html": "Trust",
}


@dataclass(frozen=True)
class Chart:
    """A chart of one kind; `name` is that of its files, `datasets` the rows it draws."""

    kind: str
    name: str
    title: str
    datasets: Mapping[str, Sequence[Row]]


def page_html(address: str, title: str, body: str) -> str:
    """A page of the site at this address; it loads the scripts of charts only where it has charts."""
    up = "../" * address.count("/")
    links = "".join(
        f"<b>{name}</b>" if one == address else f"<a href='{up}{one}'>{name}</a>" for one, name in _NAVIGATION.items()
    )
    scripts = ""
    if "<figure data-chart" in body:
        script = f"<script src='{up}assets/{{}}'></script>"
        scripts = f"<script type='application/json' id='templates'>{_inert(templates())}</script>"
        scripts += script.format(VEGA) + script.format(DRAW)
    return document(title, f"<nav aria-label='Site'>{links}</nav>{body}{scripts}", "<link rel='icon' href='data:,'>")


def write_page(path: Path, text: str) -> None:
    """Write a file of the site in one step: a reader sees the old one or the new one. An equal one stays as it is."""
    make_folder(path.parent)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        replace_text(path, text)


def chart_html(chart: Chart, below: str) -> str:
    """A chart under its title, with buttons for a picture; `below` has its data in words, as SQL and as CSV."""
    name, title = escape(chart.name), escape(chart.title)
    data = _inert(json.dumps(chart.datasets, default=_plain, separators=(",", ":")))
    buttons = "".join(
        f"<button type='button' data-kind='{kind}' aria-label='{kind.upper()} of {title}'>{kind.upper()}</button> "
        for kind in ("svg", "png")
    )
    return (
        f"<figure data-chart='{chart.kind}' data-name='{name}'><figcaption>{title}</figcaption>"
        f"<div role='img' aria-label='{title}; its numbers follow'><div class='chart' aria-hidden='true'></div></div>"
        f"<script type='application/json'>{data}</script><div class='more'>{buttons}{below}</div></figure>"
    )


def details(summary: str, body: str) -> str:
    """Something that opens under its summary; "" without a body."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>" if body else ""


def sql_html(sql: str) -> str:
    """The SQL behind a chart or a table, to open."""
    return details("SQL", f"<pre tabindex='0'><code>{escape(sql.strip())}</code></pre>")


def answered(title: str, lead: str, rows: Sequence[Row], sources: str) -> str:
    """A section with a table, its lead and where it comes from; the lead alone without rows."""
    return section(title, f"<p>{lead}</p>{table_html(rows)}<div class='more'>{sources}</div>")


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


def _inert(text: str) -> str:
    """JSON that a page can hold: no text of it can end the script that holds it."""
    return text.replace("<", "\\u003c")
