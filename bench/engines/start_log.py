"""Read the phases of a start out of an engine's log, by the rows of bench/engines/start_lines.py."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.engines.start_lines import Between, Phase, StartLog, Took
from bench.printable import printable
from bench.server_facts import CompileCache, StartPhases

SECONDS_MAX = 86_400.0  # no phase takes longer than a day
STAMP_S = 1.0  # the times of lines are whole seconds
QUOTED_MAX = 120  # characters of a line in a sentence
UNREAD_MAX = 5  # sentences
_PARTS = ("month", "day", "hour", "minute", "second")
_PLAIN = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True)
class TimedStart:
    """What we measured of a start: its moment, with the host's time zone, and seconds by our own clock."""

    started_at: datetime
    ready_s: float
    first_answer_s: float | None


class UnreadLineError(ValueError):
    """A line of the start that says nothing possible, as a sentence."""


def read_start(log: str, engine: StartLog, timed: TimedStart) -> StartPhases:
    """The phases that the log shows up to the line that means ready; never raises, whatever the log holds."""
    lines, unread = log.splitlines(), list[str]()
    seconds: dict[Phase, float] = {}
    for row in engine.took:
        if row.phase not in seconds:
            _keep(seconds, row.phase, _taken(lines, engine, row, unread))
    for between in (row for row in engine.between if row.phase not in seconds):
        _keep(seconds, between.phase, _between(lines, engine, between, timed, unread))
    for holder in engine.took:
        _subtract(seconds, holder, lines, unread)
    return StartPhases(
        started_at=timed.started_at,
        first_answer_s=timed.first_answer_s,
        compile_cache=_cache(log, engine),
        unread=tuple(dict.fromkeys(unread))[:UNREAD_MAX],
        **{f"{phase}_s": value for phase, value in seconds.items()},
    )


def _keep(seconds: dict[Phase, float], phase: Phase, value: float | None) -> None:
    if value is not None:
        seconds[phase] = value


def _taken(lines: Sequence[str], engine: StartLog, row: Took, unread: list[str]) -> float | None:
    """The seconds of a phase: the sum of its lines in one process, of the process that took longest."""
    of_process: defaultdict[str, float] = defaultdict(float)
    for line, found in _found(lines, row.pattern):
        writer = re.search(engine.process, line)
        try:
            seconds = _plain(found["s"], line)
        except UnreadLineError as error:
            unread.append(str(error))
            return None  # a sum without one of its lines is too small
        of_process[writer[1] if writer else ""] += seconds
    return max(of_process.values(), default=None)


def _found(lines: Sequence[str], pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    compiled = re.compile(pattern)
    return ((line, found) for line in lines if (found := compiled.search(line)))


def _plain(text: str, line: str) -> float:
    """A number as engines print it; UnreadLineError for a negative or huge one, or one with another locale's comma."""
    value = float(text) if _PLAIN.fullmatch(text) else -1.0
    if not 0 <= value <= SECONDS_MAX:
        raise UnreadLineError(f"{_quoted(line)} has no possible number of seconds: the phase is unknown")
    return value


def _quoted(line: str) -> str:
    shown = printable(line.strip())
    return f"`{shown[:QUOTED_MAX]}{'...' if len(shown) > QUOTED_MAX else ''}`"


def _between(
    lines: Sequence[str], engine: StartLog, row: Between, timed: TimedStart, unread: list[str]
) -> float | None:
    """The seconds between the first line that begins and the last that ends; None where a line is missing."""
    ends = [line for line, _ in _found(lines, row.end)]
    begins = None if row.begin is None else [line for line, _ in _found(lines, row.begin)]
    if not ends or begins == []:
        return None
    try:
        # The import ends where the first rank begins to load, a load where the last rank has loaded.
        last = _stamp(ends[0] if begins is None else ends[-1], engine, timed)
        first = timed.started_at if begins is None else _stamp(begins[0], engine, timed)
    except UnreadLineError as error:
        unread.append(str(error))
        return None
    seconds = (last - first).total_seconds()
    if seconds <= -STAMP_S:  # less than that: a line's time is cut to its second
        unread.append(f"{_quoted(ends[-1])} is earlier than the line before it: the phase is unknown")
        return None
    return max(0.0, seconds)


def _stamp(line: str, engine: StartLog, timed: TimedStart) -> datetime:
    """The moment of a line, whichever of its meanings is in the start that we measured."""
    found = re.search(engine.stamp, line)
    if found is None:
        raise UnreadLineError(f"{_quoted(line)} has no time: the phase is unknown")
    for moment in _moments(found.groupdict(), timed.started_at):
        if -STAMP_S < (moment - timed.started_at).total_seconds() <= timed.ready_s:
            return moment
    raise UnreadLineError(f"{_quoted(line)} has a time outside the start that we measured: the phase is unknown")


def _moments(parts: Mapping[str, str], started_at: datetime) -> Iterator[datetime]:
    """What the time of a line can mean: in the time zone of the host or, as in most containers, in UTC.

    A line without a year may be of the year after the start's.
    """
    if "minutes" in parts:  # of the process' own clock
        yield started_at + timedelta(**{name: int(value) for name, value in parts.items()})
        return
    years = (parts["year"],) if "year" in parts else (started_at.year, (started_at + timedelta(days=1)).year)
    month, day, hour, minute, second = (int(parts[name]) for name in _PARTS)
    for zone in (started_at.tzinfo, UTC):
        for year in years:
            with suppress(ValueError):  # there is no 31st of February
                yield datetime(int(year), month, day, hour, minute, second, tzinfo=zone)


def _subtract(seconds: dict[Phase, float], row: Took, lines: Sequence[str], unread: list[str]) -> None:
    """Take off a phase's seconds those of the phases that its line holds; what would be negative is unknown."""
    held = sum(seconds.get(phase, 0.0) for phase in row.holds)
    if not held or row.phase not in seconds or not any(True for _ in _found(lines, row.pattern)):
        return
    rest = seconds[row.phase] - held
    if rest < -STAMP_S:
        line = next(line for line, _ in _found(lines, row.pattern))
        unread.append(f"{_quoted(line)} is shorter than the phases in it: the phase is unknown")
        del seconds[row.phase]
    else:
        seconds[row.phase] = max(0.0, rest)


def _cache(log: str, engine: StartLog) -> CompileCache | None:
    """Whether compiled code came from a cache; `mixed` where some did and some was compiled."""
    said = {row.cache for row in engine.cache if re.search(row.pattern, log)}
    return None if not said else "mixed" if len(said) > 1 else said.pop()
