"""The series of our own nights: the view series_nights."""

from collections.abc import Iterator
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
