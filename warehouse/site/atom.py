"""The Atom feed of the site, RFC 4287: changes of series, and what Nightbench reported of its nights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter

from warehouse.report.events import events_of, headline, state_of
from warehouse.schema.row import Row
from warehouse.site.names import series_address
from warehouse.site.xml_text import element, xml_text

FEED = "events.atom"
ENTRIES = 100  # the newest
TYPE = "application/atom+xml"
_NOTHING_YET = datetime(1970, 1, 1, tzinfo=UTC)  # a feed needs a time, also before its first entry


@dataclass(frozen=True)
class Notice:
    """Something that was reported of the nights; `ended_at` None: it stands."""

    key: str
    title: str
    began_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True)
class _Entry:
    id: str
    title: str
    updated: datetime
    address: str
    category: str
    summary: str


def atom_feed(changes: Sequence[Row], notices: Sequence[Notice], newest: datetime | None) -> str:
    """The feed as text; its addresses are relative to it. An entry keeps its id, and is updated as its event is."""
    entries = [*map(_of_event, events_of(changes)), *map(_of_notice, notices)]
    entries.sort(key=attrgetter("updated", "id"), reverse=True)
    feed = element(None, "feed", attributes={"xmlns": "http://www.w3.org/2005/Atom"})
    element(feed, "id", "urn:nightbench:events")
    element(feed, "title", "Nightbench: changes and notices")
    element(feed, "updated", _moment(entries[0].updated if entries else newest or _NOTHING_YET))
    element(element(feed, "author"), "name", "Nightbench")
    element(feed, "link", attributes={"rel": "self", "type": TYPE, "href": FEED})
    element(feed, "link", attributes={"rel": "alternate", "type": "text/html", "href": "index.html"})
    for one in entries[:ENTRIES]:
        entry = element(feed, "entry")
        element(entry, "id", one.id)
        element(entry, "title", one.title)
        element(entry, "updated", _moment(one.updated))
        element(entry, "link", attributes={"rel": "alternate", "type": "text/html", "href": one.address})
        element(entry, "category", attributes={"term": one.category})
        element(entry, "summary", one.summary)
    return xml_text(feed)


def _of_event(event: Sequence[Row]) -> _Entry:
    first = event[0]
    known = (row[name] for row in event for name in ("first_bad_at", "said_at", "acknowledged_at"))
    return _Entry(
        id=f"urn:nightbench:event:{first['event_id']}",
        title=headline(event),
        updated=max(filter(None, known)),
        address=series_address(first["source"], first["series"]),
        category=state_of(event),
        summary="\n".join(_lines(event)),
    )


def _lines(event: Sequence[Row]) -> Iterator[str]:
    first = event[0]
    since = f"Since {first['first_bad']}; last good night {first['last_good']}."
    yield f"{since} Cause: {first['cause']}. {first['why'] or ''}".strip()
    for row in event:
        yield f"{row['series']} {row['metric']} {row['effect_pct']:+.1f} % [{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}]"
    if first["note"]:
        yield f"Note of {first['acknowledged_by']}: {first['note']}"


def _of_notice(notice: Notice) -> _Entry:
    state = "stands" if notice.ended_at is None else "over"
    title = notice.title if notice.ended_at is None else f"over: {notice.title}"
    identity = f"urn:nightbench:notice:{notice.key}:{_moment(notice.began_at)}"
    return _Entry(identity, title, notice.ended_at or notice.began_at, "trust.html", state, title)


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
