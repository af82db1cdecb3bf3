"""The trends of a night's series up to that night: those that changed first, then what every reader asks for."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from bench.trends.series import Series
from warehouse.lake.query import ask
from warehouse.report.figures import Picture, csv_of
from warehouse.report.markup import NOTHING, sql_html
from warehouse.report.trend_panels import Panel, panels_html, series_csv, series_sql
from warehouse.schema.row import Row
from warehouse.trends.own_series import SOURCE, own_series, with_failed_nights

PANELS, NIGHTS = 12, 90
HEADLINES = ("output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p50_ms", "usd_per_mtok_output")
SAID = frozenset({"confirmed", "suspect", "host outlier"})
READ = 48  # series that are read, of which those with an earlier night are drawn
# Those of earlier nights too: a level begins where one of them did.
_KNOWN = "SELECT * FROM changes WHERE source = ? AND night <= ? AND kind <> 'new_method' AND state <> 'weak'"
_EARLIER = "SELECT 1 FROM measurements WHERE night < ? LIMIT 1"
_SERIES = "SELECT DISTINCT series, metric FROM series_nights WHERE night = ? ORDER BY ALL"


def trends_html(data: Path, night: str, said: Sequence[Row], changes: Sequence[Row], picture: Picture) -> Markup:
    """The panels with a lead; nothing where no series has a night before this one."""
    if not ask(data, _EARLIER, (night,)).rows:
        return NOTHING  # a trend needs a night before this one
    first = [(row["series"], row["metric"]) for row in changes if row["source"] == SOURCE]
    first += [(row["series"], row["metric"]) for row in said if row["source"] == SOURCE and row["judgement"] in SAID]
    tonight = ask(data, _SERIES, (night,)).rows
    usual = [(series, metric) for wanted in HEADLINES for series, metric in tonight if metric == wanted]
    chosen = list(dict.fromkeys([*first, *usual]))[:READ]
    listed = list(own_series(data, NIGHTS, night, chosen))
    if all(len(one.valid) < 2 for one in listed):  # noqa: PLR2004 - of a new scenario there is none
        return NOTHING
    found = {(one.key.series, one.key.metric): one for one in with_failed_nights(data, listed, NIGHTS, night)}
    drawn = [found[name] for name in chosen if name in found and len(found[name].valid) > 1][:PANELS]
    known = ask(data, _KNOWN, (SOURCE, night)).dicts()
    most = f"at most {NIGHTS} nights each; what changed comes first"
    lead = Markup("<p>{} of the night's {} series, {}.</p>").format(len(drawn), len(tonight), most)
    return lead + panels_html([_panel(one, at, night, known) for at, one in enumerate(drawn)], picture)


def _panel(series: Series, at: int, night: str, changes: Sequence[Row]) -> Panel:
    name = f"{night}-trend-{at + 1}"
    data = csv_of(name, list(series_csv([series]))) + sql_html(series_sql(series.key, night))
    return Panel(series, list(_changes_of(series, changes)), name, data, with_series=True)


def _changes_of(series: Series, changes: Sequence[Row]) -> Iterator[Row]:
    """The changes of a series."""
    return (row for row in changes if (row["series"], row["metric"]) == (series.key.series, series.key.metric))
