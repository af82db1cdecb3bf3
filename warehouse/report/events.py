"""What changed, one row an event: since when, by how much, in how many series, why, and how to acknowledge it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import groupby

from warehouse.schema.row import Row

Address = Callable[[str, str], str]  # of a series' page, by its source and name; "" where there is none
RECENT = timedelta(days=30)
_BEFORE = {"confirmed": 0, "suspect": 1, "host": 2, "explained": 3, "weak": 4, "rejected": 5}


def recent(changes: Iterable[Row], newest: datetime | None) -> list[Row]:
    """The changes of the 30 days before the newest night of the warehouse."""
    return [row for row in changes if newest is not None and row["first_bad_at"] >= newest - RECENT]


def no_address(_source: str, _series: str) -> str:
    """A page of one file has no pages of series beside it."""
    return ""


def feed_html(changes: Iterable[Row], address: Address = no_address) -> str:
    """The events as a list, the newest first."""
    rows = sorted(changes, key=lambda row: row["event_id"])
    events = [list(group) for _, group in groupby(rows, key=lambda row: row["event_id"])]
    events.sort(key=lambda event: (max(row["first_bad_at"] for row in event), event[0]["event_id"]), reverse=True)
    return f"<ol class='events'>{''.join(_event_html(event, address) for event in events)}</ol>" if events else ""


def _event_html(event: Sequence[Row], address: Address) -> str:
    """One event: the series with the largest effect speaks for it."""
    first = max(event, key=lambda row: abs(row["effect_pct"]))
    state = min((row["state"] for row in event), key=lambda one: _BEFORE.get(one, len(_BEFORE)))
    others = f", and {len(event) - 1} more" if len(event) > 1 else ""
    until = f" until {escape(_night(first['until']))}" if first["until"] else ""
    note = f" Note of {escape(str(first['acknowledged_by']))}: {escape(str(first['note']))}." if first["note"] else ""
    return (
        f"<li><b>{escape(first['metric'])} {first['effect_pct']:+.1f} %</b> "
        f"[{first['ci_lo']:+.1f}, {first['ci_hi']:+.1f}], {escape(first['direction'])}, "
        f"<b class='{escape(state)}'>{escape(state)}</b>: {_series_name(first, address)}{others}.<br>"
        f"Since {escape(_night(first['first_bad']))}{until}; last good night {escape(_night(first['last_good']))}. "
        f"Cause: {escape(first['cause'])}. {escape(first['why'] or '')}{note}"
        f"<details class='more'><summary>{len(event)} series; acknowledge</summary>{_series_html(event, address)}"
        f"<p><code>nightbench acknowledge {escape(first['event_id'])} --note '...'</code></p></details></li>"
    )


def _series_html(event: Sequence[Row], address: Address) -> str:
    lines = "".join(
        f"<li>{_series_name(row, address)} {escape(row['metric'])} {row['effect_pct']:+.1f} % "
        f"[{row['ci_lo']:+.1f}, {row['ci_hi']:+.1f}], {escape(row['state'])}</li>"
        for row in event
    )
    return f"<ul>{lines}</ul>"


def _series_name(row: Row, address: Address) -> str:
    """The name of a series, with a link where it has a page."""
    page, name = address(row["source"], row["series"]), escape(row["series"])
    return f"<a href='{page}'>{name}</a>" if page else name


def _night(name: str) -> str:
    """A night as it is called; of a time, its day."""
    return name[:10] if "T" in name and ":" in name else name
