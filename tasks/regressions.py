"""The regressions that stand: confirmed changes for the worse that no later change has made good, one event each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from infra.notices.event import Event
from infra.settings import Settings
from tasks.night_notice import BISECT, page_link
from warehouse.lake.query import ask
from warehouse.report.events import events_of, headline
from warehouse.schema.row import Row
from warehouse.trends.own_series import SOURCE

REGRESSION = "regression.confirmed"
RECENT = timedelta(days=30)  # an older one opens no issue: whoever sets up a tracker gets none of last year
_STANDING = """
SELECT worse.* FROM changes AS worse
WHERE source = $1 AND direction = 'worse' AND state = 'confirmed' AND until IS NULL AND NOT EXISTS (
    SELECT 1 FROM changes AS later
    WHERE (later.source, later.series, later.metric) = (worse.source, worse.series, worse.metric)
    AND later.direction = 'better' AND later.state = 'confirmed' AND later.first_bad_at > worse.first_bad_at
)
"""
_NOTED = "SELECT DISTINCT event_id FROM acknowledgements WHERE acknowledged_by <> ?"


@dataclass(frozen=True)
class Regressions:
    """What stands; `quiet` are the keys of those that a person has acknowledged, or that are old."""

    events: tuple[Event, ...]
    quiet: tuple[str, ...]


def standing_regressions(settings: Settings, now: datetime | None = None) -> Regressions:
    """The regressions of own nights; one whose state an acknowledgement has changed does not stand."""
    data, since = settings.data.absolute(), (now or datetime.now(UTC)) - RECENT
    noted = {row[0] for row in ask(data, _NOTED, (BISECT,)).rows}
    found = {_key(rows): rows for rows in events_of(ask(data, _STANDING, (SOURCE,)).dicts())}
    quiet = {key for key, rows in found.items() if rows[0]["event_id"] in noted or _said_at(rows) < since}
    events = (_event(settings, key, rows) for key, rows in found.items() if key not in quiet)
    return Regressions(tuple(events), tuple(quiet))


def _event(settings: Settings, key: str, rows: Sequence[Row]) -> Event:
    event_id = rows[0]["event_id"]
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    lines = [*map(_line, rows), *notes, f"`nightbench acknowledge {event_id} --note '...'` keeps this quiet"]
    return Event(key, "act", headline(rows), "\n".join(lines), page_link(settings, rows[0]["night"]))


def _line(row: Row) -> str:
    size = f"{row['effect_pct']:+.1f} % [{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}]"
    since = f"since {row['first_bad']}, last good night {row['last_good']}"
    return f"{row['series']} {row['metric']} {size} {since}; {row['why']}"


def _key(rows: Sequence[Row]) -> str:
    return f"{REGRESSION}/{rows[0]['event_id']}"


def _said_at(rows: Sequence[Row]) -> datetime:
    said: list[datetime] = [row["said_at"] for row in rows]
    return max(said)
