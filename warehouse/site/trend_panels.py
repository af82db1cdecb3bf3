"""A series as a panel: its nights, levels and changes as rows that the chart draws and the table says."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from math import exp, isfinite

from bench.trends.levels import Level, levels_of
from bench.trends.series import Point, Series
from warehouse.report.page import table_html
from warehouse.schema.row import Row
from warehouse.site.blocks import Chart, chart_html, details

DRAWN_NIGHTS = 400  # newest ones of a panel; the CSV has all
LEVEL_STATES = frozenset({"confirmed", "host", "explained"})


def panel_html(series: Series, changes: Sequence[Row], name: str, data: str, *, with_series: bool = False) -> str:
    """The panel of a series with its levels as a table; `data` has the links to CSV and SQL."""
    key = series.key
    unit = f" ({key.unit})" if key.unit else ""
    title = f"{key.series}: {key.metric}{unit}" if with_series else f"{key.metric}{unit}"
    levels = _levels(series, changes)
    chart = Chart("trend", name, title, _datasets(series, levels, changes))
    said = f"<p>{_said(series, levels)}</p>"
    numbers = details("Numbers", table_html([_level_row(one) for one in levels]) + table_html(_change_rows(changes)))
    return chart_html(chart, said + numbers + data)


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
        "frame": [],
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


def _level_row(level: Level) -> Row:
    return {"first night": _day(level.first), "last night": _day(level.last), "median": level.median,
            "next night from": level.low, "to": level.high}  # fmt: skip


def _change_rows(changes: Sequence[Row]) -> list[Row]:
    names = ("first_bad", "effect_pct", "ci_lo", "ci_hi", "state", "cause", "event_id")
    return [{name: row[name] for name in names} for row in changes]


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def series_csv(listed: Sequence[Series]) -> Iterator[Row]:
    """Every night of the metrics of a series, one row each."""
    for series in listed:
        key = series.key
        for point in series.points:
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
                "stack": "; ".join(f"{name} {value}" for name, value in point.stack.items()),
            }
