"""Sends the messages of the book by apprise, which knows chat services, mail, push services and webhooks by a URL."""

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from urllib.parse import urlsplit

from bench.errors import UsageError
from infra.notices.book import EventBook, digest
from infra.notices.event import Event, Message
from infra.reporting import Say

# Schemes whose first part is a host, not a key or the name of a channel.
_WITH_HOST = frozenset({"http", "https", "json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos"})
PATIENCE_S = 20.0  # for one message; an address that hangs does not delay a night by more


def send_messages(book: EventBook, urls: Sequence[str], say: Say) -> int:
    """Send what is still to be sent, report what was not, and return how many messages were sent.

    An address that fails is not tried again in this call; its messages stay in the book. Waits while another process
    sends them.
    """
    with book.sending(say):
        return _send(book, urls, say)


def _send(book: EventBook, urls: Sequence[str], say: Say) -> int:
    by_digest, failed, sent = {digest(url): url for url in urls}, set[str](), 0
    for message in book.messages():
        if message.address in failed:
            continue
        is_sent = _is_sent(by_digest[message.address], message)
        book.mark(message, is_sent=is_sent)
        sent += is_sent
        if not is_sent:
            failed.add(message.address)
            say(
                f"the message {message.title!r} was not sent to {shown(by_digest[message.address])}: it stays in the "
                "book, and the next night or `nightbench check` tries again"
            )
    return sent


def send_now(event: Event, urls: Sequence[str], say: Say) -> None:
    """Send an event without the book: what an address does not take is lost."""
    for url in urls:
        if not _is_sent(url, Message(0, digest(url), event.title, event.text, event.urgency, 0)):
            say(f"the message {event.title!r} was not sent to {shown(url)}, and is not tried again")


def require_addresses(urls: Sequence[str]) -> None:
    """Raise UsageError for the first URL that no service of apprise understands."""
    apprise = _apprise()
    for url in urls:
        if apprise.Apprise.instantiate(url, suppress_exceptions=True) is None:
            raise UsageError(
                f"NIGHTBENCH_NOTIFY_URLS: {shown(url)} is not an address that apprise understands: write it as "
                "apprise does, such as json://HOST/PATH, ntfys://TOPIC or mailtos://USER:PASSWORD@HOST"
            )


def shown(url: str) -> str:
    """An address without what may be a secret: for most services all but the scheme is one."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as for a bracket in a password, which apprise takes
        return f"{url.partition('://')[0]}://..." if "://" in url else "..."
    return f"{parts.scheme}://{parts.hostname if parts.scheme in _WITH_HOST and parts.hostname else '...'}"


def _apprise() -> ModuleType:
    """The module, which logs nothing: its messages have addresses with their secrets."""
    import apprise  # noqa: PLC0415 - half a second

    log = logging.getLogger("apprise")
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # without any, Python prints its warnings
    return apprise


def _is_sent(url: str, message: Message) -> bool:
    """Whether apprise sent it in time; a thread that hangs ends with this process."""
    apprise, done = _apprise(), list[bool]()

    def send() -> None:
        to = apprise.Apprise()
        kind = apprise.NotifyType.WARNING if message.urgency == "act" else apprise.NotifyType.INFO
        body = message.body or message.title
        text = (
            apprise.NotifyFormat.TEXT
        )  # else a mail has it as HTML, in which lines and what looks like a tag are lost
        with suppress(Exception):  # the traceback of a thread has the address, and what is not done is not sent
            is_sent = to.add(url) and to.notify(body, title=message.title, notify_type=kind, body_format=text)
            done.append(bool(is_sent))

    thread = threading.Thread(target=send, name="notice", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return done == [True]
