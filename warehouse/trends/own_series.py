"""The series of our own nights: the view series_nights."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from duckdb import DuckDBPyConnection

from bench.trends.series import STACK_FIELDS, Point, Series, SeriesKey, lower_is_better
from warehouse.lake.database import open_warehouse
from warehouse.sql import sql

SOURCE = "nightbench"
IDS = ("night", "scenario_id", "lease_id")  # of a scenario on a lease
_SETUPS = """
SELECT {{ ids | name }}, measured_at, others_share, {{ stack | name }}
FROM series_setups WHERE night >= $1 AND night <= coalesce($2, night)
"""
_LISTED = (*IDS, "value", "spread", "repeat_count", "control")
_QUERY = """
SELECT series, metric, {% for one in listed %}list({{ one | name }} ORDER BY measured_at, night), {% endfor %}
FROM series_nights WHERE night >= $1 AND night <= coalesce($2, night)
    AND series LIKE '%/bisect' = $3
    {% if chosen %}AND metric IN ({{ metrics | rows }}) AND (series, metric) IN ({{ chosen | rows }}){% endif %}
GROUP BY ALL ORDER BY ALL
"""
_FIRST = """
SELECT min(night) FROM (
    SELECT DISTINCT night FROM measurements WHERE night <= coalesce($2, night) ORDER BY night DESC LIMIT $1
)
"""
# A scenario that failed has no series of its own: it is that of the same model, engine and client that was accepted.
# What was accepted in another series has not failed.
_FAILED = """
WITH found AS MATERIALIZED (
    SELECT DISTINCT series, night, scenario_id FROM series_setups WHERE night >= $1 AND night <= coalesce($2, night)
), planned AS MATERIALIZED (
    SELECT night, scenario_id, model, "precision", scenario, engine, driver, min(started_at) AS started_at,
        coalesce(bool_or(list_contains(series_identity, 'bisect')), FALSE) AS is_of_bisect
    FROM measurements WHERE night >= $1 AND night <= coalesce($2, night) GROUP BY ALL
), named AS (
    SELECT DISTINCT series, model, "precision", scenario, engine, driver
    FROM found JOIN planned USING (night, scenario_id)
), began AS (
    SELECT night, min(started_at) AS began_at FROM planned GROUP BY night
)
SELECT series, night, min(coalesce(started_at, began_at)) AS measured_at
FROM planned JOIN named USING (model, "precision", scenario, engine, driver) JOIN began USING (night)
WHERE (series, night) NOT IN (SELECT series, night FROM found)
    AND (night, scenario_id) NOT IN (SELECT night, scenario_id FROM found) AND NOT is_of_bisect
GROUP BY series, night HAVING measured_at IS NOT NULL ORDER BY ALL
"""
SERIES_AT_ONCE = 64
NEWEST = 400  # nights that are read; changes before them were reported then

Ids = tuple[str | None, ...]


@dataclass(frozen=True)
class _Setup:
    """What is known of a scenario on a lease, whatever the metric."""

    night: str
    measured_at: datetime
    others_share: float
    stack: Mapping[str, str]

    def point(self, value: float, spread: float | None, count: int, control: float | None) -> Point:
        """The value of a metric there."""
        error = _standard_error(spread, count, self.others_share)
        return Point(
            self.night, self.measured_at, value, spread, control=control, standard_error=error, stack=self.stack
        )


def own_series(
    data: Path,
    newest: int = NEWEST,
    until: str | None = None,
    chosen: Sequence[tuple[str, str]] | None = None,
    *,
    of_bisects: bool = False,
) -> Iterator[Series]:
    """Every series of the measurements of the newest nights that count; a night is one lease.

    `until` is the last night that is read; `chosen` are the names and metrics of the series, where not all are. The
    nights of bisects are series of their own, read only for `of_bisects`: an older version would look like a change.
    """
    if chosen is not None and not chosen:
        return
    metrics = sorted({(metric,) for _series, metric in chosen or ()})  # their values lie together in the lake
    with open_warehouse(data) as connection:
        period = (_first_night(connection, newest, until), until)
        setups = _setups(connection, period)
        asked = sql(_QUERY, listed=_LISTED, chosen=chosen, metrics=metrics)
        found = connection.execute(asked, (*period, of_bisects))
        while rows := found.fetchmany(SERIES_AT_ONCE):
            for series, metric, nights, scenarios, leases, *measured in rows:
                ids = zip(nights, scenarios, leases, strict=True)
                points = tuple(setups[one].point(*values) for one, *values in zip(ids, *measured, strict=True))
                yield Series(SeriesKey(SOURCE, series, metric), points, lower_is_better(metric, None))


def _setups(connection: DuckDBPyConnection, period: tuple[str, str | None]) -> Mapping[Ids, _Setup]:
    """The setup of each scenario on each lease: one for all of its metrics, and one stack for all that are alike."""
    setups: dict[Ids, _Setup] = {}
    stacks: dict[Ids, Mapping[str, str]] = {}
    rows = connection.execute(sql(_SETUPS, ids=IDS, stack=STACK_FIELDS), period).fetchall()
    for night, scenario, lease, measured_at, others_share, *told in rows:
        stated = zip(STACK_FIELDS, told, strict=True)
        stack = stacks.setdefault(tuple(told), {name: text for name, text in stated if text is not None})
        setups[night, scenario, lease] = _Setup(night, measured_at, others_share, stack)
    return setups


def _standard_error(spread: float | None, count: int, others_share: float) -> float | None:
    """That of a night's value as a share of it, as if what others took of the cores were lost; None: not known."""
    within = 0.0 if spread is None else spread / math.sqrt(count)
    return math.hypot(within, others_share) if spread is not None or others_share else None


def with_failed_nights(
    data: Path, listed: Iterable[Series], newest: int = NEWEST, until: str | None = None
) -> Iterator[Series]:
    """Our series with the nights on which their scenario was planned and nothing of it was accepted, as invalid."""
    failed: dict[str, list[Point]] = defaultdict(list)
    with open_warehouse(data) as connection:
        for series, night, measured_at in connection.execute(
            _FAILED, (_first_night(connection, newest, until), until)
        ).fetchall():
            failed[series].append(Point(night, measured_at, math.nan, is_valid=False))
    for one in listed:
        later = [night for night in failed[one.key.series] if night.at >= one.points[0].at]
        points = sorted((*one.points, *later), key=lambda point: (point.at, point.night)) if later else one.points
        yield replace(one, points=tuple(points))


def _first_night(connection: DuckDBPyConnection, newest: int, until: str | None) -> str:
    """The first night that is read; "" where there is none."""
    first: str | None = connection.execute(_FIRST, (newest, until)).fetchall()[0][0]
    return first or ""
