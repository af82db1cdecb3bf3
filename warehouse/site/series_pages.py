"""The pages of series, one for all metrics of one name, and the list of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import chain, groupby
from pathlib import Path

from bench.trends.series import Series, SeriesKey
from warehouse.report.events import feed_html
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import section, sql_html
from warehouse.report.trend_panels import Panel, panels_html, series_csv, series_sql
from warehouse.schema.row import Row
from warehouse.site.names import series_address_from_folder, series_page
from warehouse.site.pages import page_html, write_page
from warehouse.trends.history_series import history_series
from warehouse.trends.own_series import own_series, with_failed_nights

Changes = dict[SeriesKey, list[Row]]


@dataclass
class SeriesList:
    """What the other pages say of the series, gathered while their pages are written."""

    rows: list[str] = field(default_factory=list)
    panels: dict[SeriesKey, Panel] = field(default_factory=dict)
    newest: datetime | None = None


def write_series(data: Path, out: Path, changes: Sequence[Row], panels: int) -> SeriesList:
    """Write the page and the CSV of each series; keeps the panels of those that changed last."""
    of_key: Changes = defaultdict(list)
    for row in sorted(changes, key=lambda row: row["first_bad_at"], reverse=True):
        of_key[SeriesKey(row["source"], row["series"], row["metric"], row["unit"])].append(row)
    shown, listed = list(of_key)[:panels], SeriesList()
    for (source, name), group in groupby(
        chain(with_failed_nights(data, own_series(data)), history_series(data)),
        key=lambda one: (one.key.source, one.key.series),
    ):
        metrics, page = [one for one in group if one.points], series_page(source, name)
        if not metrics:
            continue
        write_page(out / "series" / f"{page}.csv", csv_text(list(series_csv(metrics))))
        body = panels_html([_panel(one, of_key, page, "") for one in metrics])
        heads = f"<p>Source: {escape(source)}. {_nights(metrics)}.</p>"
        address = f"series/{page}.html"
        write_page(out / address, page_html(address, name, heads + body))
        listed.rows.append(_row(metrics, page, sum(len(of_key[one.key]) for one in metrics if one.key in of_key)))
        listed.panels |= {one.key: _panel(one, of_key, page, "series/") for one in metrics if one.key in shown}
        listed.newest = max(filter(None, [listed.newest, *(one.points[-1].at for one in metrics)]))
    write_page(out / "series" / "index.html", _index(listed.rows, changes))
    return listed


def _panel(series: Series, of_key: Changes, page: str, folder: str) -> Panel:
    """A panel on the page of its series, or on the start page, where `folder` leads to the series."""
    files = csv_link(f"{folder}{page}.csv") + sql_html(series_sql(series.key))
    linked = f"<p><a href='{folder}{page}.html'>All metrics of {escape(series.key.series)}</a></p>" if folder else ""
    return Panel(series, of_key.get(series.key, ()), page, linked + files, with_series=bool(folder))


def _nights(metrics: Sequence[Series]) -> str:
    first, last = min(one.points[0].at for one in metrics), max(one.points[-1].at for one in metrics)
    return f"Nights from {first:%Y-%m-%d} to {last:%Y-%m-%d}"


def _row(metrics: Sequence[Series], page: str, changes: int) -> str:
    key = metrics[0].key
    cells = (len(metrics), max(len(one.points) for one in metrics), changes)
    numbers = "".join(f"<td class='number'>{cell}</td>" for cell in cells)
    last = max(one.points[-1].at for one in metrics)
    return (
        f"<tr><td><a href='{page}.html'>{escape(key.series)}</a></td><td>{escape(key.source)}</td>{numbers}"
        f"<td>{last:%Y-%m-%d}</td></tr>"
    )


def _index(rows: Iterable[str], changes: Sequence[Row]) -> str:
    names = ("series", "source", "metrics", "nights", "changes", "newest night")
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    body = "".join(rows)
    table = f"<div class='wide' tabindex='0'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    none = "<p>No series yet. Run a night, or import results with <code>nightbench import --history FILE</code>.</p>"
    feed = section("Changes of all nights", feed_html(changes, series_address_from_folder)) if changes else ""
    return page_html("series/index.html", "Series", (table if body else none) + feed)
