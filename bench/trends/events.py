"""Changes of several series that are one event: near in time, with the same change of the stack, or of one model."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from bench.trends.causes import SPIKE, UNKNOWN
from bench.trends.changes import Change

TOLERANCE_NIGHTS = 3  # series of one event are dated so many valid nights apart
SERIES_MIN = 3  # of an excursion, before it is more than one odd value
_SHARED = frozenset({SPIKE, UNKNOWN, "host", "driver", "client", "image", "repeats", "method", "workload"})


def with_events(changes: Iterable[Change], nights: Sequence[date]) -> list[Change]:
    """The changes with the id of their event, in the order of time; `nights` are the dates of all series.

    An excursion of fewer than three series is weak: one odd value, as any series has.
    """
    place = {night: at for at, night in enumerate(sorted(set(nights)))}
    ordered = sorted(changes, key=lambda change: (change.first_bad.at, _name(change)))
    groups: defaultdict[tuple[str, str, str], list[list[Change]]] = defaultdict(list)
    for change in ordered:
        now = place[change.first_bad.at.date()]
        for key in _keys(change):
            near = [group for group in groups[key] if now - place[group[0].first_bad.at.date()] <= TOLERANCE_NIGHTS]
            if near:
                near[-1].append(change)
                break
        else:
            started = [change]
            for key in _keys(change):
                groups[key].append(started)
    found = {id(group): group for listed in groups.values() for group in listed}
    return sorted(
        (_marked(change, group) for group in found.values() for change in group),
        key=lambda change: (change.first_bad.at, change.event_id, _name(change)),
    )


def _keys(change: Change) -> tuple[tuple[str, str, str], ...]:
    """What the changes of one event share: the new value of the most telling field, else the model."""
    source, kind = change.series.key.source, change.cause.kind
    if kind in _SHARED:
        return ((source, kind, "" if kind in {SPIKE, UNKNOWN} else change.cause.value),)
    return (source, kind, f"={change.cause.value}"), (source, kind, change.series.key.group)


def _marked(change: Change, group: Sequence[Change]) -> Change:
    kind, first = change.cause.kind, group[0]
    text = "|".join((first.series.key.source, kind, first.first_bad.night, _name(first)))
    event_id = hashlib.sha256(text.encode()).hexdigest()[:10]
    is_lone = change.kind == "excursion" and len({one.series.key for one in group}) < SERIES_MIN
    return replace(change, event_id=event_id, state="weak" if is_lone else change.state)


def _name(change: Change) -> str:
    return f"{change.series.key.series} {change.series.key.metric}"


def event_sizes(changes: Iterable[Change]) -> Counter[str]:
    """How many series changed in each event."""
    pairs = {(change.event_id, change.series.key) for change in changes}
    return Counter(event_id for event_id, _ in pairs)
