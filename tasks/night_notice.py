"""The message of a night: what it measured, what changed, what it cost, and what to do next."""

from collections import Counter
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from bench.closing import GOOD_VERDICTS
from bench.errors import NightbenchError
from bench.record import NightRecord
from bench.trends.judgement import SaidChange
from infra.notices.event import Event
from infra.settings import Settings
from infra.storage import store
from warehouse.lake.query import ask
from warehouse.report.night_line import night_line
from warehouse.trends.kept import JUDGEMENT, read_kept

REPORTED = {"confirmed", "suspect"}  # states of a change that a person should know of
_TEXTS = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True)  # noqa: S701 - plain text
_VERDICTS = "SELECT verdict FROM standing WHERE night = ?"


def night_event(settings: Settings, what: str, night: NightRecord | None, error: Exception | None) -> Event:
    """The event of a night that ended; `what` is its suite and target, for one that has no plan yet."""
    name = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}, which has no plan" if night is None else night.night
    data = settings.data.absolute()
    verdicts = Counter[str]() if night is None else _verdicts(data, night.night)
    changes = [] if night is None else _changes(data, night.night)
    is_bad = (
        error is not None
        or bool(verdicts.keys() - GOOD_VERDICTS)
        or any(change.direction == "worse" for change in changes)
    )
    ended = "failed" if error is not None and not verdicts else _in_words(verdicts)
    body = _TEXTS.from_string(files("tasks").joinpath("night_notice.txt").read_text("utf-8")).render(
        error=None if error is None else f"{type(error).__name__}: {error}",
        line=night_line(data, night.night) if verdicts and night is not None else None,
        changes=[f"{change.direction}: {change}" for change in changes],
        resume=night.night if night is not None and error is not None else None,
    )
    link = None if night is None or not verdicts else page_link(settings, night.night)
    return Event(f"night/{name}", "act" if is_bad else "know", f"{what}, night {name}: {ended}", body.strip(), link)


def page_link(settings: Settings, night: str) -> str:
    """Where people open the page of a night: its served address, else its file."""
    page = settings.data.absolute() / "reports" / f"{night}.html"
    return page.as_uri() if settings.pages_url is None else f"{settings.pages_url}/reports/{page.name}"


def _verdicts(data: Path, night: str) -> Counter[str]:
    try:
        return Counter(row[0] for row in ask(data, _VERDICTS, (night,)).rows)
    except NightbenchError:  # nothing was loaded
        return Counter()


def _changes(data: Path, night: str) -> list[SaidChange]:
    """The changes that this night's judgement reports, those for the worse first."""
    file = store.night_folder(data, night) / JUDGEMENT
    if not file.exists():
        return []
    found = [change for change in read_kept(file).changes if change.state in REPORTED]
    return sorted(found, key=lambda change: (change.direction != "worse", -abs(change.effect_pct)))


def _in_words(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "nothing was measured"
