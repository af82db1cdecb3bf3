"""Notify people: of a night when it ends, and of what looks for troubles and fails itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx2

from bench.errors import NightbenchError, UsageError
from bench.record import NightRecord
from flows.deployed import is_deployed
from flows.prefect_events import emit
from infra.notices.book import EventBook, digest
from infra.notices.event import Event
from infra.notices.send import require_addresses, send_messages, shown
from infra.notices.tell import addresses, is_anybody_told, keep_issues, tell, tell_over
from infra.reporting import Say
from infra.settings import Settings
from tasks.night_notice import change_events, night_event
from tasks.regressions import REGRESSION, standing_regressions

HEARTBEAT_S = 10.0
TEST_TITLE = "Nightbench: a test message"


@dataclass
class NightNotice:
    """The night that is notified of, once it has a plan."""

    night: NightRecord | None = None


@contextmanager
def notify_of_night(settings: Settings, what: str, say: Say) -> Iterator[NightNotice]:
    """Send one message when the block ends, by itself or by an error; none where a person or a signal stopped it.

    What cannot be sent costs the night nothing but a few seconds, after its machine is released.
    """
    notice = NightNotice()
    try:
        yield notice
    except Exception as error:
        _notify(settings, what, notice.night, error, say)
        raise
    _notify(settings, what, notice.night, None, say)


def notify_of_cause(settings: Settings, what: str, night: NightRecord, event_id: str, say: Say) -> None:
    """Send the message of a night again, now with the cause of one of its events, which is an event of Prefect, too."""
    if not is_anybody_told(settings) and not is_deployed():
        return
    try:
        keep_regressions(settings, say)
        event = night_event(settings, what, night, None)
        tell(settings, event, say)
        emit(replace(event, key=f"cause.found/{event_id}"))
    except Exception as why:  # noqa: BLE001 - of whatever kind: the bisect itself has ended well
        say(f"the cause of event {event_id} was not sent: {_as_sentence(why)}")


def keep_regressions(settings: Settings, say: Say) -> None:
    """Have issues show which regressions stand; the message of the night that found one has it, too."""
    if settings.tracker_url is None:
        return
    try:
        found = standing_regressions(settings)
    except NightbenchError as error:
        say(f"no issue of a regression was written: {error}")
        return
    keep_issues(settings, (REGRESSION,), found.events, found.quiet, say)


@contextmanager
def notify_of_failure(settings: Settings, what: str, say: Say) -> Iterator[None]:
    """Send that `nightbench` WHAT, which looks for troubles, failed itself, and when it ends well again."""
    key = f"{what}.failed/{what}"
    try:
        yield
    except Exception as error:
        why = f"{type(error).__name__}: {error}; until it works again, other troubles may not be reported"
        tell(settings, Event(key, "act", f"`nightbench {what}` failed", why), say)
        raise
    tell_over(settings, (key,), say)


def send_test(settings: Settings, say: Say) -> int:
    """Send a test message to each address and return how many took it. Raises UsageError where there is none."""
    urls = addresses(settings)
    if not is_anybody_told(settings):
        raise UsageError(
            "there is no address: set NIGHTBENCH_NOTIFY_URLS, such as to json://HOST/PATH or ntfys://TOPIC, or "
            "NIGHTBENCH_TRACKER_URL"
        )
    require_addresses(urls)
    book = EventBook(settings.data.absolute(), urls)
    now = datetime.now(UTC)
    book.report(Event(f"test/{now:%Y%m%dT%H%M%S%f}", "know", TEST_TITLE, "Messages of nights come here."))
    send_messages(book, urls, say)  # also older messages, so that how many were sent says nothing of the addresses
    without = {message.address for message in book.messages() if message.title == TEST_TITLE}
    return sum(digest(url) not in without for url in urls)


def _notify(settings: Settings, what: str, night: NightRecord | None, error: Exception | None, say: Say) -> None:
    if not is_anybody_told(settings) and settings.heartbeat_url is None and not is_deployed():
        return
    try:
        keep_regressions(settings, say)
        event = night_event(settings, what, night, error)
        tell(settings, event, say)
        if event.urgency == "know":
            _beat(settings, say)
        for one in (event, *([] if night is None else change_events(settings, night.night))):
            emit(one)
    except Exception as why:  # noqa: BLE001 - of whatever kind: the night ends as it did
        say(f"no message of this night was sent: {_as_sentence(why)}")


def _as_sentence(error: Exception) -> str:
    """An error that is not ours by its kind alone, since its text may have an address with its password."""
    return str(error) if isinstance(error, (NightbenchError, OSError)) else type(error).__name__


def _beat(settings: Settings, say: Say) -> None:
    """Call the address that expects a call after each good night, such as one of an uptime service."""
    if settings.heartbeat_url is None:
        return
    url = settings.heartbeat_url.get_secret_value()
    try:
        httpx2.get(url, timeout=HEARTBEAT_S).raise_for_status()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        say(f"the heartbeat {shown(url)} did not take the call: {type(error).__name__}")
