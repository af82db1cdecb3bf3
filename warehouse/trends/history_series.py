"""The series of imported histories."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.trends.series import STACK_FIELDS, Point, Series, SeriesKey, lower_is_better
from warehouse.lake.database import open_warehouse
from warehouse.sql import sql

_LISTED = ("measured_at", "value", "spread", *STACK_FIELDS)
_KEYS = """
SELECT coalesce(source, ''), series, metric, coalesce(unit, ''), count(*) FROM history_points
GROUP BY ALL HAVING $night IS NULL OR bool_or(night = $night) ORDER BY ALL
"""
# Of the series with these keys, a list for each part of a key. A run that stands in several files counts once.
_QUERY = """
WITH once AS (
    SELECT * FROM history_points
    SEMI JOIN (SELECT unnest(?) AS key_source, unnest(?) AS key_series, unnest(?) AS key_metric, unnest(?) AS key_unit)
    ON coalesce(source, '') = key_source AND series = key_series
        AND metric = key_metric AND coalesce(unit, '') = key_unit
    QUALIFY row_number() OVER (
        PARTITION BY source, series, metric, unit, "repeat", coalesce(run_id, measured_at || ' ' || coalesce(value, 0))
        ORDER BY measured_at, night, place
    ) = 1
)
SELECT coalesce(source, ''), series, metric, coalesce(unit, ''), any_value(is_lower_better),
    {% for one in listed %}list({{ one | name }} ORDER BY measured_at, night, place), {% endfor %}
FROM once GROUP BY ALL ORDER BY ALL
"""
BATCH_ROWS = 200_000  # of which a query makes lists in memory


def keys_of_history(data: Path, partition: str) -> Iterator[SeriesKey]:
    """The series that have a value of an import."""
    with open_warehouse(data) as connection:
        for *key, _ in connection.execute(_KEYS, {"night": partition}).fetchall():
            yield SeriesKey(*key)


def history_series(
    data: Path, partition: str | None = None, only: AbstractSet[SeriesKey] | None = None
) -> Iterator[Series]:
    """Every series of the histories, one at a time, in the order of source, name and metric.

    With the partition of an import, only the series that have a value of it; with `only`, only these.
    """
    with open_warehouse(data) as connection:
        counts = connection.execute(_KEYS, {"night": partition}).fetchall()
        for keys in _batches(row for row in counts if only is None or SeriesKey(*row[:-1]) in only):
            cursor = connection.execute(sql(_QUERY, listed=_LISTED), [list(part) for part in zip(*keys, strict=True)])
            while row := cursor.fetchone():
                source, series, metric, unit, is_lower, *lists = row
                key = SeriesKey(source, series, metric, unit)
                direction = lower_is_better(metric, unit) if is_lower is None else bool(is_lower)
                yield Series(key, tuple(_points(lists)), direction)


def _batches(counts: Iterable[tuple[Any, ...]]) -> Iterator[list[Sequence[Any]]]:
    """Neighbouring keys that together have about so many rows."""
    keys, rows = list[Sequence[Any]](), 0
    for *key, count in counts:
        if keys and rows + count > BATCH_ROWS:
            yield keys
            keys, rows = [], 0
        keys.append(key)
        rows += count
    if keys:
        yield keys


def _points(lists: Sequence[Sequence[Any]]) -> Iterator[Point]:
    """The nights; values of one stamp are its repeats, and their mean counts."""
    rows = list(zip(*lists, strict=True))
    start = 0
    for at, row in enumerate(rows):
        if at + 1 == len(rows) or rows[at + 1][0] != row[0]:
            yield _point(rows[start : at + 1])
            start = at + 1


def _point(rows: Sequence[Sequence[Any]]) -> Point:
    moment: datetime = rows[0][0]
    values = [row[1] for row in rows if row[1] is not None]
    stack = dict(zip(STACK_FIELDS, rows[-1][3:], strict=True))
    return Point(
        night=moment.isoformat(),
        at=moment,
        value=_mean(values) if values else float("nan"),
        spread=_spread(values, rows[0][2]),
        is_valid=bool(values),
        stack={name: value for name, value in stack.items() if value is not None},
    )


def _spread(values: Sequence[float], stated: float | None) -> float | None:
    """The spread of the repeats as a share of the value: their own, else the one that the file states."""
    if len(values) > 1:
        return float(np.std(np.log(values), ddof=1))
    return stated / values[0] if values and stated is not None else None


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; one value is itself."""
    return values[0] if len(values) == 1 else float(np.exp(np.mean(np.log(values))))
