"""`latest.json`: the start page for programs."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from warehouse.report.events import events_of, headline, state_of
from warehouse.report.night_line import night_line
from warehouse.schema.row import Row
from warehouse.site.atom import FEED
from warehouse.site.badge import BADGE, regressions
from warehouse.site.contents import Contents
from warehouse.site.dump import DUMPS
from warehouse.site.names import series_address

LATEST = "latest.json"
VERSION = 1  # a key that goes, or changes its meaning, raises it


def latest(data: Path, contents: Contents) -> str:
    """The file as text; a program finds what the keys mean in docs/reference/site-files.md."""
    night = contents.nights[0] if contents.nights else None
    said: dict[str, Any] = {
        "version": VERSION,
        "newest_data_at": contents.newest,
        "night": night,
        "night_line": night and night_line(data, night),
        "regressions": regressions(contents.recent_changes),
        "lines": [line.row() for line in contents.lines],
        "events": list(map(_event, events_of(contents.recent_changes))),
        "notices": [vars(one) for one in contents.notices if one.ended_at is None],
        "files": {"feed": FEED, "badge": BADGE, "dumps": list(DUMPS)},
    }
    return json.dumps(said, indent=1, default=_plain) + "\n"


def _event(event: Sequence[Row]) -> Row:
    """One event by its series with the largest effect."""
    first = event[0]
    names = (
        "event_id",
        "source",
        "series",
        "metric",
        "effect_pct",
        "ci_lo",
        "ci_hi",
        "direction",
        "first_bad",
        "until",
    )
    return {
        "title": headline(event),
        "state": state_of(event),
        **{name: first[name] for name in (*names, "cause", "note")},
        "series_count": len(event),
        "page": series_address(first["source"], first["series"]),
    }


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
