"""The series of our own nights: the view series_nights."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.trends.series import STACK_FIELDS, Point, Series, SeriesKey, lower_is_better
from warehouse.lake.database import open_warehouse

SOURCE = "nightbench"
_LISTED = ("night", "measured_at", "value", "spread", "control", *STACK_FIELDS)
_QUERY = f"""
SELECT series, metric, {", ".join(f"list({name} ORDER BY measured_at, night)" for name in _LISTED)}
FROM series_nights WHERE night >= ? GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - names of ours
_FIRST = "SELECT min(night) FROM (SELECT DISTINCT night FROM measurements ORDER BY night DESC LIMIT ?)"
# A scenario that failed has no series of its own: it is that of the same model, engine and client that was accepted.
_FAILED = """
WITH named AS (
    SELECT DISTINCT series, runs.model, runs.precision, runs.scenario, runs.engine, runs.driver
    FROM series_nights JOIN measurements AS runs USING (night, scenario_id)
), began AS (
    SELECT night, min(started_at) AS began_at FROM measurements GROUP BY night
)
SELECT series, night, min(coalesce(started_at, began_at)) AS measured_at
FROM measurements JOIN named USING (model, precision, scenario, engine, driver) JOIN began USING (night)
WHERE (series, night) NOT IN (SELECT series, night FROM series_nights)
GROUP BY series, night HAVING measured_at IS NOT NULL ORDER BY ALL
"""
NEWEST = 400  # nights that are read; what changed before them was said then


def own_series(data: Path, newest: int = NEWEST) -> Iterator[Series]:
    """Every series of the accepted measurements of the newest nights; a night is one lease."""
    stacks: dict[tuple[str | None, ...], dict[str, str]] = {}  # one for all metrics of a scenario on a lease
    with open_warehouse(data) as connection:
        first = connection.execute(_FIRST, (newest,)).fetchall()[0][0]
        for series, metric, *lists in connection.execute(_QUERY, (first or "",)).fetchall():
            points = []
            for night, measured_at, value, spread, control, *stack in zip(*lists, strict=True):
                told = tuple(stack)
                known = stacks.get(told)
                if known is None:
                    stated = zip(STACK_FIELDS, told, strict=True)
                    known = stacks[told] = {name: text for name, text in stated if text is not None}
                points.append(Point(night, measured_at, value, spread, control=control, stack=known))
            yield Series(SeriesKey(SOURCE, series, metric), tuple(points), lower_is_better(metric, None))


def with_failed_nights(data: Path, listed: Iterable[Series]) -> Iterator[Series]:
    """Our series with the nights on which their scenario was planned and nothing of it was accepted, as invalid."""
    failed: dict[str, list[Point]] = defaultdict(list)
    with open_warehouse(data) as connection:
        for series, night, measured_at in connection.execute(_FAILED).fetchall():
            failed[series].append(Point(night, measured_at, math.nan, is_valid=False))
    for one in listed:
        points = (*one.points, *(night for night in failed[one.key.series] if night.at >= one.points[0].at))
        yield replace(one, points=tuple(sorted(points, key=lambda point: (point.at, point.night))))
