"""What changed, one row an event: since when, by how much, in how many series, why, and how to acknowledge it."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from markupsafe import Markup, escape

from nights.files import TRACE
from warehouse.report.markup import NOTHING, joined
from warehouse.schema.row import Row

Address = Callable[[str, str], str]  # of a series' page, by its source and name; "" where there is none
RECENT = timedelta(days=30)
_BEFORE = {"confirmed": 0, "suspect": 1, "host": 2, "explained": 3, "weak": 4, "rejected": 5}
_EVENT = Markup(
    "<li><b>{metric} {effect}</b> {interval}, {direction}, <b class='{state}'>{state}</b>: {series}{others}.<br>"
    "Since {since}{until}; last good night {good}. Cause: {cause}. {why}{note}"
    "<details class='more'><summary>{count} series; acknowledge</summary>{all_series}"
    "<p><code>nightbench acknowledge {event_id} --note '...'</code></p></details></li>"
)


def recent(changes: Iterable[Row], newest: datetime | None) -> list[Row]:
    """The changes of the 30 days before the newest night of the warehouse."""
    return [row for row in changes if newest is not None and row["first_bad_at"] >= newest - RECENT]


def no_address(_source: str, _series: str) -> str:
    """A page of one file has no pages of series beside it."""
    return ""


def feed_html(changes: Iterable[Row], address: Address = no_address) -> Markup:
    """The events as a list, the newest first; nothing without events."""
    events = events_of(changes)
    listed = joined(_event_html(event, address) for event in events)
    return Markup("<ol class='events'>{}</ol>").format(listed) if events else NOTHING


def events_of(changes: Iterable[Row]) -> list[list[Row]]:
    """The changes of each event together, the newest event first; in each the largest effect first."""
    rows = sorted(changes, key=lambda row: (row["event_id"], -abs(row["effect_pct"])))
    events = [list(group) for _, group in groupby(rows, key=lambda row: row["event_id"])]
    events.sort(key=lambda event: (max(row["first_bad_at"] for row in event), event[0]["event_id"]), reverse=True)
    return events


def state_of(event: Sequence[Row]) -> str:
    """The most serious state of an event's series."""
    return min((str(row["state"]) for row in event), key=lambda one: _BEFORE.get(one, len(_BEFORE)))


def headline(event: Sequence[Row]) -> str:
    """One event in a line: `tpot_p50_ms +9.1 %, worse, confirmed: m/fp8/chat, and 3 more`."""
    first = event[0]
    others = f", and {len(event) - 1} more" if len(event) > 1 else ""
    said = f"{first['metric']} {_effect(first)}, {first['direction']}, {state_of(event)}"
    return f"{said}: {first['series']}{others}"


def _event_html(event: Sequence[Row], address: Address) -> Markup:
    """One event, represented by the series with the largest effect."""
    first, state = event[0], state_of(event)
    others = f", and {len(event) - 1} more" if len(event) > 1 else ""
    until = f" until {_night(first['until'])}" if first["until"] else ""
    return _EVENT.format(
        **{name: first[name] for name in ("metric", "direction", "cause", "event_id")},
        effect=_effect(first),
        interval=_interval(first),
        state=state,
        series=_series_name(first, address),
        others=others,
        since=_night(first["first_bad"]),
        until=until,
        good=_night(first["last_good"]),
        why=first["why"] or "",
        note=_note_html(first, is_beside_runs=address is no_address),
        count=len(event),
        all_series=_series_html(event, address),
    )


def _note_html(row: Row, *, is_beside_runs: bool) -> Markup:
    """The note on an event. A page of one file is beside the nights' folders, so it links the traces that a note names.

    A site may be uploaded without these folders.
    """
    if not row["note"]:
        return NOTHING
    parts = re.split(rf"({TRACE})", row["note"]) if is_beside_runs else [row["note"]]
    link = Markup("<a href='../{0}'>{0}</a>")
    shown = joined(link.format(part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup(" Note of {}: {}.").format(row["acknowledged_by"], shown)


def _effect(row: Row) -> str:
    return f"{row['effect_pct']:+.1f} %"


def _interval(row: Row) -> str:
    return f"[{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}]"


def _series_html(event: Sequence[Row], address: Address) -> Markup:
    lines = joined(
        Markup("<li>{} {} {} {}, {}</li>").format(
            _series_name(row, address), row["metric"], _effect(row), _interval(row), row["state"]
        )
        for row in event
    )
    return Markup("<ul>{}</ul>").format(lines)


def _series_name(row: Row, address: Address) -> Markup:
    """The name of a series, with a link where it has a page."""
    page = address(row["source"], row["series"])
    return Markup("<a href='{}'>{}</a>").format(page, row["series"]) if page else escape(row["series"])


def _night(name: str) -> str:
    """A night as it is called; of a time, its day."""
    return name[:10] if "T" in name and ":" in name else name
