"""Charts on a page, each with its data as CSV and the query behind it, and with buttons for a picture."""

import csv
import io
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from warehouse.report.markup import NOTHING, joined
from warehouse.schema.row import Row

Picture = Callable[["Chart"], Markup]
_RUN_BY_SPREADSHEETS = frozenset("=+-@")
_BUTTON = Markup("<button type='button' data-kind='{}' aria-label='{} of {}'>{}</button> ")
_FIGURE = Markup(
    "<figure{to_draw} data-name='{name}'><figcaption>{title}</figcaption>"
    "<div role='img' aria-label='{title}: {said}'><div class='chart' aria-hidden='true'>{picture}</div></div>"
    "{data}<div class='more'>{buttons}{below}</div></figure>"
)


@dataclass(frozen=True)
class Chart:
    """A chart of one kind; `name` is that of its files, `said` its numbers as text, `datasets` the rows it draws."""

    kind: str
    name: str
    title: str
    said: str
    datasets: Mapping[str, Sequence[Row]]


@cache
def save_script() -> str:
    """The script behind the buttons that save a chart."""
    return Path(__file__).with_name("save.js").read_text(encoding="utf-8")


def in_browser(_chart: Chart) -> Markup:
    """No picture yet: the page's script draws the chart from its data when it comes into view."""
    return NOTHING


def drawn(chart: Chart) -> Markup:
    """The picture of a chart as SVG, for a page that needs no script to be read."""
    from warehouse.report.charts import svg_of  # noqa: PLC0415 - takes a second, and most nights have no trend yet

    return Markup(svg_of(chart.kind, _json(chart.datasets)))  # noqa: S704 - Vega escapes the texts of its SVG


def chart_html(chart: Chart, below: Markup, picture: Markup = NOTHING) -> Markup:
    """A chart under its title, with buttons for a picture; `below` has its data in words, as SQL and as CSV.

    Without a picture the page's script draws it.
    """
    kinds = ("svg", "png")
    buttons = joined(_BUTTON.format(kind, kind.upper(), chart.title, kind.upper()) for kind in kinds)
    to_draw = data = NOTHING
    if not picture:
        to_draw = Markup(" data-chart='{}'").format(chart.kind)
        data = json_script(_json(chart.datasets))
    return _FIGURE.format(
        to_draw=to_draw,
        name=chart.name,
        title=chart.title,
        said=chart.said,
        picture=picture,
        data=data,
        buttons=buttons,
        below=below,
    )


def csv_of(name: str, rows: Sequence[Row]) -> Markup:
    """A link that holds its rows as CSV, for a page of one file."""
    address = f"data:text/csv;charset=utf-8;base64,{b64encode(csv_text(rows).encode()).decode()}"
    return Markup("<a href='{}' download='{}.csv'>CSV</a>").format(address, name)


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV with the names of their columns; a text that a spreadsheet would run begins with an apostrophe."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_safe(value) for value in row.values()] for row in rows)
    return target.getvalue()


def csv_link(address: str, words: str = "CSV") -> Markup:
    """A link to a CSV file of the site."""
    return Markup("<a href='{}' download>{}</a>").format(address, words)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value[:1] in _RUN_BY_SPREADSHEETS else value
    return _iso(value) if isinstance(value, datetime) else value


def _plain(value: Any) -> Any:
    return _iso(value) if isinstance(value, datetime) else str(value)


@lru_cache(2**16)
def _iso(moment: datetime) -> str:
    """A time as text; the metrics of a page have the same times, some of them dozens of times."""
    return moment.isoformat()


def json_script(text: str, **attributes: str) -> Markup:
    """JSON that a page holds for its scripts: no text of it can end the element."""
    named = joined(Markup(" {}='{}'").format(name, value) for name, value in attributes.items())
    inert = Markup(text.replace("<", "\\u003c"))  # noqa: S704 - JSON has no other character that HTML reads in a script
    return Markup("<script type='application/json'{}>{}</script>").format(named, inert)


def _json(datasets: Mapping[str, Sequence[Row]]) -> str:
    return json.dumps(datasets, default=_plain, separators=(",", ":"))
