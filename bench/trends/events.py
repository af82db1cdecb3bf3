"""Changes of several series that are one event: near in time, with the same change of the stack, or of one model."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from bench.trends.causes import SPIKE, UNKNOWN
from bench.trends.changes import Change
from bench.trends.series import SeriesKey, group_of

TOLERANCE_NIGHTS = 3  # series of one event are dated so many valid nights apart
SERIES_MIN = 3  # of an excursion, before it is more than one odd value
NIGHT_SHARE = 0.25  # of the series of its night: a bad host or network moves all that it measures
_SHARED = frozenset({SPIKE, UNKNOWN, "host", "driver", "client", "image", "repeats", "method", "workload"})
Measured = Mapping[tuple[str, date], int]  # how many series of a source have a value of a date


@dataclass(frozen=True)
class Member:
    """A change to group into events; one that an earlier night reported already has its event's id."""

    key: SeriesKey
    cause: str
    value: str  # what the most telling field became
    night: str  # the first of the change
    on: date
    event_id: str = ""

    @property
    def keys(self) -> tuple[tuple[str, str, str], ...]:
        """What the changes of one event share: the new value of the most telling field, else the model."""
        if self.cause in _SHARED:
            return ((self.key.source, self.cause, "" if self.cause in {SPIKE, UNKNOWN} else self.value),)
        return (self.key.source, self.cause, f"={self.value}"), (self.key.source, self.cause, group_of(self.key.series))


def member_of(change: Change) -> Member:
    """A change as events see it."""
    first = change.first_bad
    return Member(change.series.key, change.cause.kind, change.cause.value, first.night, first.at.date())


def with_events(changes: Iterable[Change], measured: Measured, said: Sequence[Member] = ()) -> list[Change]:
    """The changes with the id of their event, in the order of time.

    `said` are the reported changes of earlier nights; a change of the same event gets its id. An excursion is weak
    where it moved fewer than three series or less than a quarter of those of its night.
    """
    ours = {member_of(change): change for change in changes}
    found = []
    for group in _grouped([*said, *ours], (on for _source, on in measured)):
        event_id = next(filter(None, (one.event_id for one in group)), None) or _id_of(group[0])
        count = len({one.key for one in group})
        for one in (one for one in group if one in ours):
            change = ours[one]
            is_few = count < max(SERIES_MIN, NIGHT_SHARE * measured.get((one.key.source, one.on), 0))
            state = "weak" if is_few and change.kind == "excursion" else change.state
            found.append(replace(change, event_id=event_id, state=state))
    return sorted(found, key=lambda change: (change.first_bad.at, change.event_id, _name(change)))


def _grouped(members: Iterable[Member], nights: Iterable[date]) -> list[list[Member]]:
    """The members of each event, the first in time first."""
    listed = list(members)
    place = {night: at for at, night in enumerate(sorted({*nights, *(one.on for one in listed)}))}
    groups: defaultdict[tuple[str, str, str], list[list[Member]]] = defaultdict(list)
    for member in sorted(listed, key=lambda one: (one.on, one.night, one.key.series, one.key.metric, one.key.unit)):
        now = place[member.on]
        for key in member.keys:
            near = [group for group in groups[key] if now - place[group[0].on] <= TOLERANCE_NIGHTS]
            if near:
                near[-1].append(member)
                break
        else:
            started = [member]
            for key in member.keys:
                groups[key].append(started)
    return list({id(group): group for each in groups.values() for group in each}.values())


def _id_of(first: Member) -> str:
    key = first.key
    text = "|".join((key.source, first.cause, first.night, f"{key.series} {key.metric}"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _name(change: Change) -> str:
    return f"{change.series.key.series} {change.series.key.metric}"
