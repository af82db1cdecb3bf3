"""Tell people of something by the addresses of the settings: written to the book first, then sent."""

from collections.abc import Collection, Sequence

from bench.errors import LedgerError
from infra.notices.book import Changed, EventBook
from infra.notices.event import Event
from infra.notices.send import send_messages, send_now
from infra.reporting import Say
from infra.settings import Settings


def addresses(settings: Settings) -> list[str]:
    """The addresses that get messages, as apprise writes them."""
    return [url.get_secret_value() for url in settings.notify_urls]


def tell(settings: Settings, event: Event, say: Say, *, is_kept: bool = False) -> bool:
    """Send an event, once; returns whether it was new, which is known without an address if it `is_kept`.

    Where the book cannot be written, as on a full disk, the event is sent without it: to be told twice is better than
    not at all.
    """
    urls = addresses(settings)
    if not urls and not is_kept:
        return True
    try:
        book = EventBook(settings.data.absolute(), urls)
        is_new = book.report(event)
    except (LedgerError, OSError) as error:
        say(f"the message is not kept until an address takes it: {error}")
        send_now(event, urls, say)
        return True
    send_messages(book, urls, say)
    return is_new


def tell_standing(
    settings: Settings, kinds: Collection[str], events: Sequence[Event], say: Say, *, is_kept: bool = False
) -> Changed:
    """Send which events of these kinds begin and which are over, and what could not be sent before.

    Without an address nothing changes, unless the events are `is_kept`. A book that cannot be used is a warning:
    whatever found the events reports them itself, too.
    """
    urls = addresses(settings)
    if not urls and not is_kept:
        return Changed()
    try:
        book = EventBook(settings.data.absolute(), urls)
        changed = book.report_standing(kinds, events)
        send_messages(book, urls, say)
    except (LedgerError, OSError) as error:
        say(f"no message was sent: {error}")
        return Changed()
    return changed


def tell_over(settings: Settings, keys: Collection[str], say: Say) -> None:
    """Send the end of these events, of those that stand."""
    urls = addresses(settings)
    if not urls:
        return
    try:
        book = EventBook(settings.data.absolute(), urls)
        book.end(keys)
        send_messages(book, urls, say)
    except (LedgerError, OSError) as error:
        say(f"no message was sent: {error}")
