"""Tell people of something by what the settings name: written to the book first, then sent, and shown as an issue."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from bench.errors import LedgerError, UsageError
from infra.notices.book import Changed, EventBook
from infra.notices.event import Event, storable
from infra.notices.issue_book import IssueBook
from infra.notices.issues import sync_issues
from infra.notices.send import send_messages, send_now
from infra.notices.tracker import open_tracker
from infra.reporting import Say
from infra.settings import Settings


def addresses(settings: Settings) -> list[str]:
    """The addresses that get messages, as apprise writes them."""
    return [url.get_secret_value() for url in settings.notify_urls]


def is_anybody_told(settings: Settings) -> bool:
    """Whether the settings name an address of messages, or a tracker."""
    return bool(settings.notify_urls) or settings.tracker_url is not None


def tell(settings: Settings, event: Event, say: Say, *, is_kept: bool = False) -> bool:
    """Send an event, once; returns whether it was new, which is known without an address if it `is_kept`.

    Where the book cannot be written, as on a full disk, the event is sent without it: to be told twice is better than
    not at all.
    """
    if not is_anybody_told(settings) and not is_kept:
        return True
    urls = addresses(settings)
    try:
        issues = _issues(settings)
        if issues is not None:
            issues.report(event)
        book = EventBook(_data(settings), urls)
        is_new = book.report(event)
    except (LedgerError, OSError) as error:
        say(f"the message is not kept until an address takes it: {error}")
        send_now(event, urls, say)
        return True
    try:
        _deliver(settings, book, issues, say)
    except (LedgerError, OSError) as error:
        say(f"the message stays in the book: {error}")
        if is_new:
            send_now(event, urls, say)
    return is_new


def tell_standing(
    settings: Settings,
    kinds: Collection[str],
    events: Sequence[Event],
    say: Say,
    *,
    is_kept: bool = False,
    is_searched: Callable[[str | None], bool] = lambda _cloud: True,
) -> Changed:
    """Send which events of these kinds begin and which are over, and what could not be sent before.

    An event is over only where the cloud of it `is_searched`; None is a cloud that is not known.

    Without an address nothing changes, unless the events are `is_kept`. A book that cannot be used is a warning:
    whatever found the events reports them itself, too.
    """
    if not is_anybody_told(settings) and not is_kept:
        return Changed()
    try:
        issues, book = _issues(settings), EventBook(_data(settings), addresses(settings))
        unsearched = [key for key, cloud in book.clouds_of(kinds).items() if not is_searched(cloud)]
        if issues is not None:
            issues.stand(kinds, events, unsearched=unsearched)
        changed = book.report_standing(kinds, events, unsearched)
        _deliver(settings, book, issues, say)
    except (LedgerError, OSError) as error:
        say(f"no message was sent: {error}")
        return Changed()
    return changed


def tell_over(settings: Settings, keys: Collection[str], say: Say) -> None:
    """Send the end of these events, of those that stand."""
    if not is_anybody_told(settings):
        return
    keys = [storable(key) for key in keys]
    try:
        issues = _issues(settings)
        if issues is not None:
            issues.end(keys)
        book = EventBook(_data(settings), addresses(settings))
        book.end(keys)
        _deliver(settings, book, issues, say)
    except (LedgerError, OSError) as error:
        say(f"no message was sent: {error}")


def keep_issues(
    settings: Settings, kinds: Collection[str], events: Sequence[Event], quiet: Collection[str], say: Say
) -> None:
    """Have issues show events of these kinds, which have no message of their own, when the next message is sent.

    A `quiet` key opens no issue; the one that it has stays as it is.
    """
    try:
        issues = _issues(settings)
        if issues is not None:
            issues.stand(kinds, events, quiet)
    except (LedgerError, OSError) as error:
        say(f"no issue was written: {error}")


def _deliver(settings: Settings, book: EventBook, issues: IssueBook | None, say: Say) -> None:
    send_messages(book, addresses(settings), say)
    if issues is not None:
        _show(settings, issues, say)


def _show(settings: Settings, issues: IssueBook, say: Say) -> None:
    try:
        tracker = open_tracker(settings)
    except UsageError as error:
        say(f"no issue was written: {error}")
        return
    if tracker is not None:
        sync_issues(issues, tracker, say)


def _issues(settings: Settings) -> IssueBook | None:
    return None if settings.tracker_url is None else IssueBook(_data(settings))


def _data(settings: Settings) -> Path:
    return settings.data.absolute()
