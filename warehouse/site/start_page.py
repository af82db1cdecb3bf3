"""The start page: each model and machine in a line, what changed, and the frontiers of throughput and price."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from warehouse.lake.query import ask
from warehouse.report.events import RECENT, feed_html, recent
from warehouse.report.markup import NOTHING, section
from warehouse.report.night_line import night_line
from warehouse.report.trend_panels import panels_html
from warehouse.site.contents import Contents
from warehouse.site.frontier_charts import frontier_charts
from warehouse.site.names import series_address
from warehouse.site.overview_table import overview_html
from warehouse.site.series_pages import SeriesList

_EMPTY = Markup(
    "<p class='line'>The warehouse is empty.</p><p>Run a night with <code>nightbench run --poc</code>, or "
    "import results with <code>nightbench import --history FILE</code>.</p>"
)
_NIGHT = Markup("<p class='line'><a href='night/{night}.html'>Night {night}</a>: {line}</p>")
_IMPORTS = "SELECT count(DISTINCT night) FROM history_points"


def start_body(data: Path, out: Path, contents: Contents, listed: SeriesList, compared: Markup) -> Markup:
    """The page's body; it writes the CSV of its charts. `compared` links the pages of two sides."""
    nights, changes = contents.nights, contents.changes
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
        + overview_html(contents.lines, out)
        + section("Changes", said + earlier + compared)
        + (section("Trends", panels_html(panels)) if panels else NOTHING)
        + frontier_charts(contents.points, out, is_open=bool(now))
    )


def _line(data: Path, listed: SeriesList, nights: Sequence[str]) -> Markup:
    """The newest night in one line; where there are only imported histories, how many series they have."""
    if not nights:
        imports = ask(data, _IMPORTS).rows[0][0]
        files = "1 imported history" if imports == 1 else f"{imports} imported histories"
        return Markup("<p class='line'>{} series from {}; no own night yet.</p>").format(len(listed.rows), files)
    return _NIGHT.format(night=nights[0], line=night_line(data, nights[0]))
