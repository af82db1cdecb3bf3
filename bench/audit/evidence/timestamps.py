"""The times of a claim: in its file, in its name, by its clocks."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from bench import evidence_columns as ev
from bench.audit.claim import Claim, Pair
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed

DAY_S, HOUR_S = 86_400.0, 3_600.0
SLACK_S = 600.0  # from a run's end to the writing of its file
_MS_FROM = 1e11  # larger epochs are milliseconds
_COMPACT = re.compile(r"(\d{8})(?:[-_T]?(\d{6}))?")
_OFFSETS_H_MAX = 14
_OFFSET_SLACK_S = 60.0


@dataclass(frozen=True)
class _Moment:
    """A moment as far as it is known: somewhere from `least_s` to `most_s`."""

    least_s: float
    most_s: float


def start_of(claim: Claim) -> datetime | None:
    """When the run started, in UTC; None where that is not stated, or is a number that no calendar has."""
    try:
        return None if claim.said.started_at_s is None else datetime.fromtimestamp(claim.said.started_at_s, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def timestamps(claim: Claim, pairs: Iterable[Pair]) -> EvidenceByColumn:
    """How far apart the claim's own moments are; a day without a time is any moment of it."""
    return {**_pairs(claim, pairs), **_clocks(claim)}


def _pairs(claim: Claim, pairs: Iterable[Pair]) -> EvidenceByColumn:
    own = [pair for pair in pairs if pair.what == "timestamp"]
    if not own:
        return {}
    read = [(pair, _moment(pair.claimed), _moment(pair.observed)) for pair in own]
    known = [(pair, one, other) for pair, one, other in read if one is not None and other is not None]
    if not known:
        return {ev.TIMESTAMPS_APART_H: MissingInput(f"unreadable date: {own[0].claimed!r} or {own[0].observed!r}")}
    apart, pair = max(((_apart_s(one, other), pair) for pair, one, other in known), key=lambda found: found[0])
    note = f"{pair.claimed} and {pair.observed} {f'({pair.where})' if pair.where else ''}".rstrip()
    found: EvidenceByColumn = {ev.TIMESTAMPS_APART_H: Observed(apart / HOUR_S, note)}
    if apart <= DAY_S:
        hours = " - a whole number of hours: UTC against local time?" if _is_offset(apart) else ""
        found[ev.TIMESTAMPS_UNEXPLAINED_S] = Observed(
            max(0.0, apart - (claim.said.duration_s or 0.0) - SLACK_S), note + hours
        )
    return found


def _is_offset(apart_s: float) -> bool:
    hours = round(apart_s / HOUR_S)
    return 0 < hours <= _OFFSETS_H_MAX and abs(apart_s - hours * HOUR_S) <= _OFFSET_SLACK_S


def _apart_s(one: _Moment, other: _Moment) -> float:
    return max(0.0, one.least_s - other.most_s, other.least_s - one.most_s)


def _moment(text: str) -> _Moment | None:
    """A date or a moment as files write it; without a zone it counts as UTC."""
    return next(_readings(text.strip()), None)


def _readings(text: str) -> Iterator[_Moment]:
    compact = _COMPACT.fullmatch(text)
    if compact is not None:
        text = compact[1] if compact[2] is None else f"{compact[1]}T{compact[2]}"
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        yield from _epochs(text)
        return
    start_s = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    is_day = ":" not in text and "T" not in text
    # A day of some place: it begins up to 14 hours before that of UTC and ends up to 12 after it.
    yield _Moment(start_s - 14 * HOUR_S, start_s + DAY_S + 12 * HOUR_S) if is_day else _Moment(start_s, start_s)


def _epochs(text: str) -> Iterator[_Moment]:
    try:
        value = float(text)
    except ValueError:
        return
    seconds = value / 1e3 if value > _MS_FROM else value
    yield _Moment(seconds, seconds)


def _clocks(claim: Claim) -> EvidenceByColumn:
    """Start, end and duration among each other."""
    said = claim.said
    if said.started_at_s is None or said.ended_at_s is None:
        return {}
    span = said.ended_at_s - said.started_at_s
    found: EvidenceByColumn = {ev.END_BEFORE_START_S: Observed(max(0.0, -span), f"from start to end {span:.0f} s")}
    if said.duration_s is not None and span >= 0:
        # Times are often written to the second.
        outside = max(0.0, said.duration_s - span - max(2.0, 0.01 * said.duration_s), span - said.duration_s - DAY_S)
        found[ev.DURATION_OUTSIDE_WINDOW_S] = Observed(
            outside, f"{said.duration_s:.1f} s of load in {span:.1f} s from start to end"
        )
    return found
