"""The start page: one line, what changed, and the newest night beside the one thirty nights before."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from warehouse.lake.query import ask
from warehouse.report.page import section, table_html
from warehouse.schema.row import Row
from warehouse.site.blocks import Chart, chart_html, csv_link, csv_text, details, sql_html, write_page
from warehouse.site.events import RECENT, feed_html, recent
from warehouse.site.interactivity import at_fixed_speeds
from warehouse.site.questions import PARETO
from warehouse.site.series_pages import SeriesList
from warehouse.trends.of_night import summary_of, verdicts_of

_RUNS = """
SELECT night, count(*) AS runs, count(*) FILTER (verdict = 'failed') AS failed,
    count(*) FILTER (verdict = 'rejected') AS rejected, count(*) FILTER (verdict = 'suspect') AS suspect
FROM measurements WHERE night = ? GROUP BY night
"""
_FINDINGS = "SELECT status, count(*) FROM findings WHERE night = ? AND severity <> 'info' GROUP BY status"
_USD = "SELECT usd FROM night_costs WHERE night = ? AND usd IS NOT NULL"
_IMPORTS = "SELECT count(DISTINCT night) FROM history_points"


def start_body(data: Path, out: Path, changes: Sequence[Row], listed: SeriesList, nights: Sequence[str]) -> str:
    """The page's body; it writes the CSV of its charts."""
    if not listed.rows and not nights:
        return (
            "<p class='line'>The warehouse is empty.</p><p>Run a night with <code>nightbench run --poc</code>, or "
            "import results with <code>nightbench import --history FILE</code>.</p>"
        )
    now = recent(changes, listed.newest)
    older = len({row["event_id"] for row in changes}) - len({row["event_id"] for row in now})
    said = feed_html(now) or f"<p>No change in the {RECENT.days} days to the newest night.</p>"
    earlier = f"<p><a href='series/index.html'>{older} earlier events</a></p>" if older else ""
    keys = {(row["source"], row["series"], row["metric"], row["unit"]) for row in now}
    panels = "".join(
        html for key, html in listed.panels.items() if (key.source, key.series, key.metric, key.unit) in keys
    )
    return (
        _line(data, listed, nights)
        + section("Changes", said + earlier)
        + (section("Trends", f"<div class='panels'>{panels}</div>") if panels else "")
        + _pareto(data, out)
    )


def _line(data: Path, listed: SeriesList, nights: Sequence[str]) -> str:
    """The newest night in one line; where there are only imported histories, how many series they have."""
    if not nights:
        imports = ask(data, _IMPORTS).rows[0][0]
        files = "1 imported history" if imports == 1 else f"{imports} imported histories"
        return f"<p class='line'>{len(listed.rows)} series from {files}; no own night yet.</p>"
    night = nights[0]
    verdicts = verdicts_of(data, night)
    said = summary_of(verdicts) if verdicts else "no series judged yet"
    runs = ask(data, _RUNS, (night,)).dicts()[0]
    counts = ", ".join(f"{runs[name]} {name}" for name in ("failed", "rejected", "suspect") if runs[name])
    found = Counter(dict(ask(data, _FINDINGS, (night,)).rows))
    audit = f"audit: {found['FAIL']} FAIL {found['WARN']} WARN"
    usd = ask(data, _USD, (night,)).rows
    parts = [
        said,
        f"{runs['runs']} runs" + (f", {counts}" if counts else ""),
        audit,
        *(f"${row[0]:,.2f}" for row in usd),
    ]
    link = f"<a href='night/{escape(night)}.html'>Night {escape(night)}</a>"
    return f"<p class='line'>{link}: {' · '.join(map(escape, parts))}</p>"


def _pareto(data: Path, out: Path) -> str:
    """The trade between users and machines, with a table at fixed speeds; "" where no night has such points."""
    points = ask(data, PARETO).dicts()
    if not points:
        return ""
    write_page(out / "data" / "pareto.csv", csv_text(points))
    below = csv_link("data/pareto.csv") + sql_html(PARETO) + details("Numbers", table_html(points))
    datasets = {"points": points}
    charts = chart_html(Chart("pareto", "pareto", "Throughput per GPU against speed of one user", datasets), below)
    if priced := [point for point in points if point["usd_per_mtok"]]:  # of what costs nothing, there is nothing to see
        title = "Price of a million output tokens against speed of one user"
        charts += chart_html(Chart("cost", "price", title, {"points": priced}), below)
    fixed = list(at_fixed_speeds(points))
    lead = "<p>Interpolated rows lie between two measured loads. Speeds outside the measured range are left out.</p>"
    table = section("At fixed interactivity", lead + table_html(fixed)) if fixed else ""
    return section("Throughput, speed and price", f"<div class='panels'>{charts}</div>") + table
