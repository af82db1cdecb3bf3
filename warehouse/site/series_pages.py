"""The pages of series, one for all metrics of one name, and the list of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path

from markupsafe import Markup

from bench.trends.series import Series, SeriesKey
from nights.durable import write_if_changed
from warehouse.report.events import feed_html
from warehouse.report.figures import csv_link, csv_text
from warehouse.report.markup import NOTHING, grid_html, section, sql_html
from warehouse.report.trend_panels import Panel, panels_html, series_csv, series_sql
from warehouse.schema.row import Row
from warehouse.site.names import series_address_from_folder, series_page
from warehouse.site.pages import page_html
from warehouse.trends.history_series import history_series
from warehouse.trends.own_series import own_series, with_failed_nights

Changes = dict[SeriesKey, list[Row]]
_ALL_METRICS = Markup("<p><a href='{}.html'>All metrics of {}</a></p>")
_ROW = Markup("<td><a href='{page}.html'>{series}</a></td><td>{source}</td>{numbers}<td>{last:%Y-%m-%d}</td>")
_NONE = Markup(
    "<p>No series yet. Run a night, or import results with <code>nightbench import --history FILE</code>.</p>"
)


@dataclass
class SeriesList:
    """What the other pages say of the series, gathered while their pages are written."""

    rows: list[Markup] = field(default_factory=list)
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
        write_if_changed(out / "series" / f"{page}.csv", csv_text(list(series_csv(metrics))))
        body = panels_html([_panel(one, of_key, page, "") for one in metrics])
        heads = Markup("<p>Source: {}. {}.</p>").format(source, _nights(metrics))
        address = f"series/{page}.html"
        newest = max(one.points[-1].at for one in metrics)
        write_if_changed(out / address, page_html(data, address, name, heads + body, newest))
        listed.rows.append(_row(metrics, page, sum(len(of_key[one.key]) for one in metrics if one.key in of_key)))
        listed.panels |= {one.key: _panel(one, of_key, page, "series/") for one in metrics if one.key in shown}
        listed.newest = max(filter(None, [listed.newest, newest]))
    write_if_changed(out / "series" / "index.html", _index(data, listed, changes))
    return listed


def _panel(series: Series, of_key: Changes, page: str, folder: str) -> Panel:
    """A panel on the page of its series, or on the start page, where `folder` leads to the series."""
    files = csv_link(f"{folder}{page}.csv") + sql_html(series_sql(series.key))
    linked = _ALL_METRICS.format(f"{folder}{page}", series.key.series) if folder else NOTHING
    return Panel(series, of_key.get(series.key, ()), page, linked + files, with_series=bool(folder))


def _nights(metrics: Sequence[Series]) -> str:
    first, last = min(one.points[0].at for one in metrics), max(one.points[-1].at for one in metrics)
    return f"Nights from {first:%Y-%m-%d} to {last:%Y-%m-%d}"


def _row(metrics: Sequence[Series], page: str, changes: int) -> Markup:
    key = metrics[0].key
    cells = (len(metrics), max(len(one.points) for one in metrics), changes)
    numbers = NOTHING.join(Markup("<td class='number'>{}</td>").format(cell) for cell in cells)
    return _ROW.format(
        page=page,
        series=key.series,
        source=key.source,
        numbers=numbers,
        last=max(one.points[-1].at for one in metrics),
    )


def _index(data: Path, listed: SeriesList, changes: Sequence[Row]) -> str:
    heads = ("series", "source", "metrics", "nights", "changes", "newest night")
    table = grid_html(heads, listed.rows) if listed.rows else _NONE
    feed = feed_html(changes, series_address_from_folder)
    body = table + (section("Changes of all nights", feed) if feed else NOTHING)
    return page_html(data, "series/index.html", "Series", body, listed.newest)
