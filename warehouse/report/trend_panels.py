"""Series as panels: their nights, levels and changes as rows that a chart draws and a table says.

Panels of one metric have one scale in percent: an equal height is an equal change.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import exp, isfinite
from statistics import median

from markupsafe import Markup

from bench.trends.levels import Level, levels_of
from bench.trends.series import Point, Series, SeriesKey
from warehouse.report.figures import Chart, Picture, chart_html, in_browser
from warehouse.report.markup import NOTHING, details, joined, table_html
from warehouse.schema.row import Row
from warehouse.sql import sql
from warehouse.trends.own_series import SOURCE

_SHARED = Markup("<p>Panels of one metric have one scale in percent: an equal height is an equal change.</p>")
DRAWN_NIGHTS = 400  # newest ones of a panel; the CSV has all
LEVEL_STATES = frozenset({"confirmed", "host", "explained"})
WIDER = 4  # a panel whose values range this many times wider than the others' has a scale of its own
NARROWEST = 0.005  # half of the range of a scale, as a share of its middle: less would magnify rounding
_OWN = (
    "SELECT * FROM series_nights WHERE series = {{ key.series }} AND metric = {{ key.metric }}"
    "{% if until %} AND night <= {{ until }}{% endif %} ORDER BY measured_at"
)
_IMPORTED = (
    "SELECT * FROM history_points WHERE source = {{ key.source }} AND series = {{ key.series }} "
    "AND metric = {{ key.metric }} AND coalesce(unit, '') = {{ key.unit }} ORDER BY measured_at"
)


@dataclass(frozen=True)
class Panel:
    """A series with its changes; `name` is that of its files, `data` the links to CSV and SQL."""

    series: Series
    changes: Sequence[Row]
    name: str
    data: Markup
    with_series: bool = False

    @property
    def title(self) -> str:
        """The metric with its unit, after its series where the page has several."""
        key = self.series.key
        unit = f" ({key.unit})" if key.unit else ""
        return f"{key.series}: {key.metric}{unit}" if self.with_series else f"{key.metric}{unit}"

    @property
    def group(self) -> tuple[str, str]:
        """The metric and its unit: panels of one group have one scale."""
        return self.series.key.metric, self.series.key.unit


def panels_html(panels: Sequence[Panel], picture: Picture = in_browser) -> Markup:
    """Panels side by side, those of one metric to one scale; nothing without panels."""
    if not panels:
        return NOTHING
    read = [_read(panel) for panel in panels]
    groups: dict[tuple[str, str], list[_Read]] = defaultdict(list)
    for one in read:
        groups[one.panel.group].append(one)
    shares = {key: _share(group) for key, group in groups.items()}
    lead = _SHARED if any(len(group) > 1 for group in groups.values()) else NOTHING
    body = joined(_panel_html(one, shares[one.panel.group], picture) for one in read)
    return Markup("{}<div class='panels'>{}</div>").format(lead, body)


@dataclass(frozen=True)
class _Read:
    """A panel with its levels, the rows that its chart draws, and the lowest and highest value of these."""

    panel: Panel
    levels: Sequence[Level]
    datasets: Mapping[str, Sequence[Row]]
    low: float
    high: float

    @property
    def share(self) -> float:
        """Half of the range as a share of its middle; 0 where nothing is drawn, or values are not positive."""
        return max(NARROWEST, (self.high - self.low) / (self.high + self.low)) if self.low > 0 else 0.0


def _read(panel: Panel) -> _Read:
    levels = _levels(panel.series, panel.changes)
    datasets = _datasets(panel.series, levels, panel.changes)
    rows = [*datasets["nights"], *datasets["levels"]]
    values = [row[name] for row in rows for name in ("value", "low", "high") if row.get(name) is not None]
    return _Read(panel, levels, datasets, min(values, default=0.0), max(values, default=0.0))


def _share(group: Sequence[_Read]) -> float:
    """The widest range of the panels of one metric, but for those that are far wider than most."""
    shares = [one.share for one in group if one.share] or [0.0]
    usual = WIDER * median(shares)
    return max(share for share in shares if share <= usual)


def _panel_html(read: _Read, shared: float, picture: Picture) -> Markup:
    """The chart, and below it what it says, its numbers and its sources."""
    panel, said, share = read.panel, _said(read.panel.series, read.levels), max(shared, read.share)
    middle = (read.low + read.high) / 2
    frame = [{"value": middle * (1 - share)}, {"value": middle * (1 + share)}] if read.share else []
    words = said + _changes_said(panel.changes)
    chart = Chart("trend", panel.name, panel.title, words, {**read.datasets, "frame": frame})
    own = " Its values range wider than those of the others: it has a scale of its own." if read.share > shared else ""
    levels = table_html([_level_row(one) for one in read.levels])
    numbers = details("Numbers", levels + table_html(_change_rows(panel.changes)))
    below = Markup("<p>{}{}</p>{}{}").format(said, own, numbers, panel.data)
    return chart_html(chart, below, picture(chart))


def _levels(series: Series, changes: Sequence[Row]) -> list[Level]:
    is_level = [row for row in changes if row["kind"] != "excursion" and row["state"] in LEVEL_STATES]
    return levels_of(series, [row["first_bad_at"] for row in is_level])


def _datasets(series: Series, levels: Sequence[Level], changes: Sequence[Row]) -> dict[str, Sequence[Row]]:
    points = series.points[-DRAWN_NIGHTS:]
    first = points[0].at
    return {
        "nights": [_night_row(one) for one in points if one.is_valid],
        "levels": [
            {"at": max(one.first, first), "to": one.last, "value": one.median, "low": one.low, "high": one.high}
            for one in levels
            if one.last >= first
        ],
        "changes": [
            {"at": row["first_bad_at"], "what": f"{row['effect_pct']:+.1f} %, {row['state']}, {row['cause']}"}
            for row in changes
            if row["first_bad_at"] >= first
        ],
        "stack": list(_stack_rows([one for one in points if one.is_valid])),
        "invalid": [{"at": one.at} for one in points if not one.is_valid],
    }


def _night_row(point: Point) -> Row:
    """A night with the range of its repeats, one standard deviation to each side."""
    row: Row = {"at": point.at, "value": point.value}
    if point.spread and isfinite(point.spread):
        row |= {"low": point.value * exp(-point.spread), "high": point.value * exp(point.spread)}
    return row


def _stack_rows(points: Sequence[Point]) -> Iterator[Row]:
    """The nights on which something that explains the values became another."""
    for before, after in pairwise(points):
        if after.stack is before.stack:
            continue  # which most nights share
        other = [
            f"{name}: {before.stack[name]} → {value}"
            for name, value in after.stack.items()
            if name in before.stack and before.stack[name] != value
        ]
        if other:
            yield {"at": after.at, "what": "; ".join(other)}


def _said(series: Series, levels: Sequence[Level]) -> str:
    """The panel in words."""
    count, invalid = len(series.valid), len(series.points) - len(series.valid)
    nights = "1 night" if count == 1 else f"{count} nights"
    failed = f", {invalid} without a valid value" if invalid else ""
    if not levels:
        return f"{nights}{failed}."
    older = f" The chart shows the newest {DRAWN_NIGHTS}." if len(series.points) > DRAWN_NIGHTS else ""
    return f"{nights}{failed}, level since {_day(levels[-1].first)}: {levels[-1].median:,.4g}.{older}"


def _changes_said(changes: Sequence[Row]) -> str:
    """The changes in words, for the text in place of the chart."""
    return "".join(
        f" {row['effect_pct']:+.1f} % since {row['first_bad_at']:%Y-%m-%d}, {row['state']}, {row['cause']}."
        for row in changes
    )


def _level_row(level: Level) -> Row:
    return {"first night": _day(level.first), "last night": _day(level.last), "median": level.median,
            "next night from": level.low, "to": level.high}  # fmt: skip


def _change_rows(changes: Sequence[Row]) -> list[Row]:
    names = ("first_bad", "effect_pct", "ci_lo", "ci_hi", "state", "cause", "event_id")
    return [{name: row[name] for name in names} for row in changes]


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def series_sql(key: SeriesKey, until: str | None = None) -> str:
    """The query that returns the values of a panel; `until` is its last night, where that is not the newest."""
    return sql(_OWN if key.source == SOURCE else _IMPORTED, key=key, until=until)


def series_csv(listed: Sequence[Series]) -> Iterator[Row]:
    """Every night of the metrics of a series, one row each."""
    stacks: dict[int, str] = {}  # the text of each stack that the points share, by its identity
    for series in listed:
        key = series.key
        for point in series.points:
            if id(point.stack) not in stacks:
                stacks[id(point.stack)] = "; ".join(f"{name} {value}" for name, value in point.stack.items())
            yield {
                "source": key.source,
                "series": key.series,
                "metric": key.metric,
                "unit": key.unit,
                "night": point.night,
                "measured_at": point.at,
                "is_valid": point.is_valid,
                "value": point.value if point.is_valid else None,
                "spread": point.spread,
                "stack": stacks[id(point.stack)],
            }
