"""The trends of a night's series up to that night: those that changed first, then what every reader asks for."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path

from markupsafe import Markup

from bench.trends.series import Series
from warehouse.lake.query import ask
from warehouse.report.figures import Picture, csv_of
from warehouse.report.markup import NOTHING, sql_html
from warehouse.report.trend_panels import Panel, panels_html, series_csv, series_sql
from warehouse.schema.row import Row
from warehouse.sql import sql
from warehouse.trends.of_night import changes_of_night, verdicts_of
from warehouse.trends.own_series import SOURCE, own_series, with_failed_nights

PANELS, NIGHTS = 12, 90
HEADLINES = ("output_throughput_tok_per_s", "ttft_p50_ms", "tpot_p50_ms", "usd_per_mtok_output")
SAID = frozenset({"confirmed", "suspect", "host outlier"})
READ = 48  # series that are read, of which those with an earlier night are drawn
# Those of earlier nights too: a level begins where one of them did.
_KNOWN = "SELECT * FROM changes WHERE source = ? AND night <= ? AND kind <> 'new_method' AND state <> 'weak'"
_MEASURED = "SELECT DISTINCT night FROM measurements ORDER BY night"
_SERIES = """
SELECT DISTINCT night, series, metric FROM series_nights WHERE night IN ({{ nights | rows }}) ORDER BY ALL
"""
Name = tuple[str, str]  # of a series, and its metric


@dataclass(frozen=True)
class _OfNight:
    """A night's own series, those of them that are read, and the first night that is drawn."""

    tonight: Sequence[Name]
    chosen: Sequence[Name]
    first: str


@dataclass(frozen=True)
class NightTrends:
    """The series that the pages of some nights draw, which are read once for all of them."""

    data: Path
    nights: Mapping[str, _OfNight]  # those with a night before them
    series: Mapping[Name, Series]

    def html(self, night: str, picture: Picture) -> Markup:
        """The panels of a night with a lead; nothing where no series has a night before this one."""
        own = self.nights.get(night)
        drawn = list(self._drawn(own, night))[:PANELS] if own else []
        if own is None or not drawn:
            return NOTHING
        known = ask(self.data, _KNOWN, (SOURCE, night)).dicts()
        most = f"at most {NIGHTS} nights each; what changed comes first"
        lead = Markup("<p>{} of the night's {} series, {}.</p>").format(len(drawn), len(own.tonight), most)
        return lead + panels_html([_panel(one, at, night, known) for at, one in enumerate(drawn)], picture)

    def _drawn(self, own: _OfNight, night: str) -> Iterator[Series]:
        """The chosen series as they were at that night, of which at least two nights are valid."""
        for series in (self.series[name] for name in own.chosen if name in self.series):
            of_time = (point for point in series.points if own.first <= point.night <= night)
            until = replace(series, points=tuple(dropwhile(lambda point: not point.is_valid, of_time)))
            if len(until.valid) > 1:
                yield until


def read_trends(data: Path, nights: Sequence[str]) -> NightTrends:
    """Read what the pages of these nights draw."""
    measured = [name for (name,) in ask(data, _MEASURED).rows]
    # How many nights there are until each; a trend needs one before.
    until = {night: bisect_right(measured, night) for night in nights if measured and measured[0] < night}
    if not until:
        return NightTrends(data, {}, {})
    tonight: dict[str, list[Name]] = defaultdict(list)
    for night, series, metric in ask(data, sql(_SERIES, nights=[(night,) for night in until])).rows:
        tonight[night].append((series, metric))
    own = {
        night: _OfNight(tonight[night], _chosen(data, night, tonight[night]), measured[max(0, count - NIGHTS)])
        for night, count in until.items()
    }
    wanted = list(dict.fromkeys(name for one in own.values() for name in one.chosen))
    newest = NIGHTS + max(until.values()) - min(until.values())
    read = with_failed_nights(data, own_series(data, newest, max(until), wanted), newest, max(until))
    return NightTrends(data, own, {(one.key.series, one.key.metric): one for one in read})


def _chosen(data: Path, night: str, tonight: Sequence[Name]) -> list[Name]:
    """The series to read: those that changed, those that are in doubt, then what every reader asks for."""
    changed = [row for row in changes_of_night(data, night) if row["source"] == SOURCE]
    doubted = [row for row in verdicts_of(data, night) if row["source"] == SOURCE and row["judgement"] in SAID]
    first = [(row["series"], row["metric"]) for row in [*changed, *doubted]]
    usual = [(series, metric) for wanted in HEADLINES for series, metric in tonight if metric == wanted]
    return list(dict.fromkeys([*first, *usual]))[:READ]


def _panel(series: Series, at: int, night: str, changes: Sequence[Row]) -> Panel:
    name = f"{night}-trend-{at + 1}"
    data = csv_of(name, list(series_csv([series]))) + sql_html(series_sql(series.key, night))
    return Panel(series, list(_changes_of(series, changes)), name, data, with_series=True)


def _changes_of(series: Series, changes: Sequence[Row]) -> Iterator[Row]:
    """The changes of a series."""
    return (row for row in changes if (row["series"], row["metric"]) == (series.key.series, series.key.metric))
