"""What the start page and the files for programs have in common, read once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from warehouse.lake.query import ask
from warehouse.report.events import recent
from warehouse.schema.row import Row
from warehouse.site.age import newest_data
from warehouse.site.atom import Notice
from warehouse.site.overview import Line, overview
from warehouse.site.questions import POINTS, TRIED

_CHANGES = "FROM changes WHERE kind <> 'new_method' AND state <> 'weak'"
_NIGHTS = "SELECT DISTINCT night FROM measurements ORDER BY night DESC"


@dataclass(frozen=True)
class Contents:
    """The answers; nights are newest first, `newest` is the time of the newest data."""

    changes: Sequence[Row]
    nights: Sequence[str]
    newest: datetime | None
    points: Sequence[Row]
    lines: Sequence[Line]
    notices: Sequence[Notice]

    @property
    def recent_changes(self) -> list[Row]:
        """Those of the 30 days before the newest data."""
        return recent(self.changes, self.newest)


def read_contents(data: Path, notices: Sequence[Notice]) -> Contents:
    """Ask the warehouse; `notices` are what was reported of the nights, which it does not know."""
    points = ask(data, POINTS).dicts()
    return Contents(
        changes=ask(data, _CHANGES).dicts(),
        nights=[row[0] for row in ask(data, _NIGHTS).rows],
        newest=newest_data(data),
        points=points,
        lines=overview(points, ask(data, TRIED).dicts()),
        notices=notices,
    )
