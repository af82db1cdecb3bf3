"""The series of our own nights: the view series_nights."""

from collections.abc import Iterator
from pathlib import Path

from bench.trends.series import STACK_FIELDS, Point, Series, SeriesKey, lower_is_better
from warehouse.lake.database import open_warehouse

SOURCE = "nightbench"
_LISTED = ("night", "measured_at", "value", "spread", "control", *STACK_FIELDS)
_QUERY = f"""
SELECT series, metric, {", ".join(f"list({name} ORDER BY measured_at, night)" for name in _LISTED)}
FROM series_nights GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - names of ours


def own_series(data: Path) -> Iterator[Series]:
    """Every series of the accepted measurements; a night is one lease."""
    with open_warehouse(data) as connection:
        for series, metric, *lists in connection.execute(_QUERY).fetchall():
            points = []
            for night, measured_at, value, spread, control, *stack in zip(*lists, strict=True):
                stated = dict(zip(STACK_FIELDS, stack, strict=True))
                known = {name: text for name, text in stated.items() if text is not None}
                points.append(Point(night, measured_at, value, spread, control=control, stack=known))
            yield Series(SeriesKey(SOURCE, series, metric), tuple(points), lower_is_better(metric, None))
