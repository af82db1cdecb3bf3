"""The start page: what changed, the newest night beside an older one, and prices at the speeds of one user."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from markupsafe import Markup

from nights.durable import write_if_changed
from warehouse.lake.query import ask
from warehouse.report.events import RECENT, feed_html, recent
from warehouse.report.figures import Chart, chart_html, csv_link, csv_text
from warehouse.report.markup import NOTHING, details, part, section, sql_html, table_html
from warehouse.report.night_line import night_line
from warehouse.report.trend_panels import panels_html
from warehouse.schema.row import Row
from warehouse.site.names import series_address
from warehouse.site.questions import PARETO
from warehouse.site.series_pages import SeriesList

_EMPTY = Markup(
    "<p class='line'>The warehouse is empty.</p><p>Run a night with <code>nightbench run --poc</code>, or "
    "import results with <code>nightbench import --history FILE</code>.</p>"
)
_NIGHT = Markup("<p class='line'><a href='night/{night}.html'>Night {night}</a>: {line}</p>")
_FIXED = Markup(
    "<p>Interpolated rows lie between two measured loads. Speeds outside the measured range are left out.</p>"
)
_IMPORTS = "SELECT count(DISTINCT night) FROM history_points"


def start_body(data: Path, out: Path, changes: Sequence[Row], listed: SeriesList, nights: Sequence[str]) -> Markup:
    """The page's body; it writes the CSV of its charts."""
    if not listed.rows and not nights:
        return _EMPTY
    now = recent(changes, listed.newest)
    older = len({row["event_id"] for row in changes}) - len({row["event_id"] for row in now})
    none = Markup("<p>No change in the {} days to the newest night.</p>").format(RECENT.days)
    said = feed_html(now, series_address) or none
    earlier = Markup("<p><a href='series/index.html'>{} earlier events</a></p>").format(older) if older else NOTHING
    keys = {(row["source"], row["series"], row["metric"], row["unit"]) for row in now}
    panels = [one for key, one in listed.panels.items() if (key.source, key.series, key.metric, key.unit) in keys]
    return (
        _line(data, listed, nights)
        + section("Changes", said + earlier)
        + (section("Trends", panels_html(panels)) if panels else NOTHING)
        + _pareto(data, out, is_open=bool(now))
    )


def _line(data: Path, listed: SeriesList, nights: Sequence[str]) -> Markup:
    """The newest night in one line; where there are only imported histories, how many series they have."""
    if not nights:
        imports = ask(data, _IMPORTS).rows[0][0]
        files = "1 imported history" if imports == 1 else f"{imports} imported histories"
        return Markup("<p class='line'>{} series from {}; no own night yet.</p>").format(len(listed.rows), files)
    return _NIGHT.format(night=nights[0], line=night_line(data, nights[0]))


def _pareto(data: Path, out: Path, *, is_open: bool) -> Markup:
    """The trade between users and machines, with a table at fixed speeds; nothing where no night has such points."""
    points = ask(data, PARETO).dicts()
    if not points:
        return NOTHING
    write_if_changed(out / "data" / "pareto.csv", csv_text(points))
    below = csv_link("data/pareto.csv") + sql_html(PARETO) + details("Numbers", table_html(points))
    said = _points_said(points, "tok_per_s_per_gpu", "tok/s per GPU")
    title = "Throughput per GPU against speed of one user"
    charts = chart_html(Chart("pareto", "pareto", title, said, {"points": points}), below)
    priced = [point for point in points if point["usd_per_mtok"]]
    free = NOTHING if priced else Markup("<p>{}</p>").format(_unpriced(points))
    if priced:
        title = "Price of a million output tokens against speed of one user"
        said = _points_said(priced, "usd_per_mtok", "USD per million output tokens")
        charts += chart_html(Chart("cost", "price", title, said, {"points": priced}), below)
    fixed = list(at_fixed_speeds(points))
    table = part("At fixed interactivity", _FIXED + table_html(fixed), is_open=is_open) if fixed else NOTHING
    panels = Markup("<div class='panels'>{}</div>{}").format(charts, free)
    return section("Throughput, speed and price", panels) + table


def _unpriced(points: Sequence[Row]) -> str:
    """Why there is no chart of prices."""
    if all(point["usd_per_mtok"] == 0 for point in points):
        return "These nights cost nothing, so no price is drawn."
    return "No price is known for these nights, so none is drawn."


def _points_said(points: Sequence[Row], column: str, unit: str) -> str:
    """The ends of a chart's points in words, of its newest night."""
    night = max(point["night"] for point in points)
    newest = [point for point in points if point["night"] == night]
    slow, fast = (pick(newest, key=lambda point: point["tok_per_s_per_user"]) for pick in (min, max))
    ends = " and ".join(
        f"{end[column]:,.4g} {unit} at {end['tok_per_s_per_user']:,.4g} tok/s per user" for end in (slow, fast)
    )
    loads = "1 load" if len(newest) == 1 else f"{len(newest)} loads"
    return f"night {night}, {loads}, from {ends}."


SPEEDS = (10, 20, 30, 50, 100)  # tok/s per user
MEASURED = 0.01  # a load within 1 % of the speed was measured at it
_COLUMNS = {"tok_per_s_per_gpu": "tok/s per GPU", "usd_per_mtok": "USD per Mtok", "joules_per_token": "J per token"}


def at_fixed_speeds(points: Sequence[Row]) -> Iterator[Row]:
    """One row a setup, night and speed inside the measured range; `points` are ordered by setup, night and speed."""
    for (setup, night), group in groupby(points, key=lambda row: (row["setup"], row["night"])):
        rows = list(group)
        speeds = [row["tok_per_s_per_user"] for row in rows]
        for speed in SPEEDS:
            if speeds[0] <= speed <= speeds[-1]:
                is_measured = min(abs(one / speed - 1) for one in speeds) <= MEASURED
                cells = {title: _between(rows, column, speed) for column, title in _COLUMNS.items()}
                yield {"tok/s per user": speed, "setup": setup, "night": night, **cells,
                       "how": "measured" if is_measured else "interpolated"}  # fmt: skip


def _between(rows: Sequence[Row], column: str, speed: float) -> float | None:
    known = [(row["tok_per_s_per_user"], row[column]) for row in rows if row[column]]
    if not known or not known[0][0] <= speed <= known[-1][0]:
        return None
    return float(np.exp(np.interp(np.log(speed), *np.log(np.array(known)).T)))
