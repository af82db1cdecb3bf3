"""The message of a night: what it measured, what changed, what it cost, and what to do next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from bench.closing import GOOD_VERDICTS
from bench.errors import (
    CloudDeniedError,
    MachineInUseError,
    NightbenchError,
    NoSpaceError,
)
from bench.record import NightRecord
from bench.trends.judgement import SaidChange
from bench.wording import counted
from infra.notices.event import Event, Urgency
from infra.settings import Settings
from infra.storage import store
from warehouse.lake.database import has_data
from warehouse.lake.query import ask
from warehouse.report.night_line import night_line
from warehouse.trends.kept import JUDGEMENT, read_kept

REPORTED = {"confirmed", "suspect"}  # states of a change that a person should know of
# The end of a night by an error, as the title names it, where the error itself has no name for it; else "failed".
ENDS: Mapping[type[Exception], str] = {
    CloudDeniedError: "the cloud refuses the token",
    MachineInUseError: "another night holds the machine",
    NoSpaceError: "the disk is full",
}
_URGENCY: Mapping[bool, Urgency] = {True: "act", False: "know"}  # by whether the night is bad
UNREADABLE = "the warehouse cannot be read"
_TEXTS = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True)  # noqa: S701 - plain text
BISECT = "nightbench bisect"  # who notes the cause of an event
_NOTES = "SELECT event_id, arg_max(note, acknowledged_at) FROM acknowledgements WHERE acknowledged_by = ? GROUP BY 1"
_VERDICTS = "SELECT verdict FROM standing WHERE night = ?"


@dataclass(frozen=True)
class _Found:
    """What the warehouse has of a night, or why it could not be read."""

    verdicts: Counter[str] = field(default_factory=Counter)
    line: str | None = None
    causes: Mapping[str, str] = field(default_factory=dict)
    unreadable: str | None = None


def night_event(settings: Settings, what: str, night: NightRecord | None, error: Exception | None) -> Event:
    """The event of a night that ended; `what` is its suite and target, for one that has no plan yet."""
    name = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}, which has no plan" if night is None else night.night
    data = settings.data.absolute()
    changes = [] if night is None else _changes(data, night.night)
    found = _Found() if night is None else _find(data, night.night, changes)
    verdicts, causes = found.verdicts, found.causes
    is_bad = (
        error is not None
        or found.unreadable is not None
        or bool(verdicts.keys() - GOOD_VERDICTS)
        or any(change.direction == "worse" for change in changes)
    )
    why = None if error is None else f"{type(error).__name__}: {error}"
    kind = "night.finished" if error is None else "night.failed"
    results = UNREADABLE if found.unreadable else _in_words(verdicts)
    ended = ", ".join(filter(None, (_end(error), results, *_counted(changes)))) or "nothing was measured"
    body = _body(found, changes, why, night.night if night is not None and error is not None else None)
    ended = "; ".join((ended, *(cause.partition("\n")[0] for cause in causes.values())))  # traces: in the body
    link = None if night is None or not verdicts else page_link(settings, night.night)
    title, urgency = f"{what}, night {name}: {ended}", _URGENCY[is_bad]
    return Event(f"{kind}/{name}", urgency, title, body, link, reason=why or "")


def _body(found: _Found, changes: Sequence[SaidChange], error: str | None, resume: str | None) -> str:
    """The text of the message; `resume` is a night of which runs may be missing."""
    template = _TEXTS.from_string(files("tasks").joinpath("night_notice.txt").read_text("utf-8"))
    text = template.render(
        error=error,
        unreadable=found.unreadable,
        line=found.line,
        changes=[f"{change.direction}: {change}" for change in changes],
        causes=[f"event {event_id}: {cause}" for event_id, cause in found.causes.items()],
        resume=resume,
    )
    return text.strip()


def change_events(settings: Settings, night: str) -> Iterator[Event]:
    """An event for each confirmed change that a night shows, for those who route events: the night's message has it."""
    for change in _changes(settings.data.absolute(), night):
        if change.state == "confirmed":
            kind = "regression" if change.direction == "worse" else "improvement"
            key = f"{kind}.confirmed/{change.event_id}"
            yield Event(key, "act" if kind == "regression" else "know", str(change), link=page_link(settings, night))


def page_link(settings: Settings, night: str) -> str:
    """Where people open the page of a night: its served address, else its file."""
    page = settings.data.absolute() / "reports" / f"{night}.html"
    return page.as_uri() if settings.pages_url is None else f"{settings.pages_url}/reports/{page.name}"


def _find(data: Path, night: str, changes: Sequence[SaidChange]) -> _Found:
    """A warehouse that cannot be read ends no message: the person who gets it has to know that as well."""
    if not has_data(data):
        return _Found()
    try:
        verdicts = Counter[str](row[0] for row in ask(data, _VERDICTS, (night,)).rows)
        return _Found(verdicts, night_line(data, night) if verdicts else None, _causes(data, changes))
    except NightbenchError as error:
        return _Found(unreadable=str(error))


def confirmed_of(data: Path, night: str) -> list[SaidChange]:
    """The changes that a night confirms, or the night that measured its suspect scenarios again."""
    return [change for change in _changes(data, night) if change.state == "confirmed"]


def _changes(data: Path, night: str) -> list[SaidChange]:
    """The changes that the judgement of a night reports, as its second measurement has them; the worse ones first."""
    later = [other for other in store.nights(data) if other > night]
    again = [other for other in later if store.read_night(data, other).rerun_of == night]
    files = [store.night_folder(data, one) / JUDGEMENT for one in (night, *again)]
    said = [change for file in files if file.exists() for change in read_kept(file).changes]
    found = {(one.key, one.event_id): one for one in said if one.state in REPORTED}.values()
    return sorted(found, key=lambda change: (change.direction != "worse", -abs(change.effect_pct)))


def _causes(data: Path, changes: Sequence[SaidChange]) -> dict[str, str]:
    """What a bisect noted of the events of these changes."""
    events = {change.event_id for change in changes}
    noted = dict(ask(data, _NOTES, (BISECT,)).rows) if events else {}
    return {event_id: note for event_id, note in noted.items() if event_id in events}


def _in_words(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())


def _end(error: Exception | None) -> str | None:
    """How an error ended the night; None for one that came to its end, whatever its runs are worth."""
    if error is None:
        return None
    if isinstance(error, NightbenchError) and error.ending is not None:
        return error.ending.lower()
    return next((words for kind, words in ENDS.items() if isinstance(error, kind)), "failed")


def _counted(changes: list[SaidChange]) -> Iterator[str]:
    """How many changes for the worse and for the better, such as "1 change for the worse"."""
    for direction, count in Counter(change.direction for change in changes).items():
        words = {"worse": " for the worse", "better": " for the better"}.get(direction, "")
        yield f"{counted(count, 'change')}{words}"
