"""Sends the messages of the book by apprise, which knows chat services, mail, push services and webhooks by a URL."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any
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
        url = by_digest[message.address]
        done = _deliver(url, message)
        book.mark(message, is_sent=done.is_sent, taken=done.taken)
        sent += done.is_sent
        if not done.is_sent:
            failed.update([] if done.taken else [message.address])
            whom = f"some recipients of {shown(url)}" if message.taken or done.taken else shown(url)
            say(
                f"the message {message.title!r} was not sent to {whom}: it stays in the book, and the next night or "
                "`nightbench check` tries again"
            )
    return sent


def send_now(event: Event, urls: Sequence[str], say: Say) -> None:
    """Send an event without the book: what an address does not take is lost."""
    for url in urls:
        if not _deliver(url, Message(0, digest(url), event.title, event.text, event.urgency, 0)).is_sent:
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
    except ValueError:  # such as for a bracket in a password
        return f"{url.partition('://')[0]}://..." if "://" in url else "..."
    return f"{parts.scheme}://{parts.hostname if parts.scheme in _WITH_HOST and parts.hostname else '...'}"


def _apprise() -> ModuleType:
    """The module, which logs nothing: its messages have addresses with their secrets."""
    import apprise  # noqa: PLC0415 - half a second

    log = logging.getLogger("apprise")
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # without any, Python prints its warnings
    module: ModuleType = apprise
    return module


@dataclass(frozen=True)
class _Delivery:
    """What became of a message at one address; `taken` has the digests of the recipients that took it now."""

    is_sent: bool
    taken: tuple[str, ...]


def _deliver(url: str, message: Message) -> _Delivery:
    """Have apprise send it in time to each recipient that has not taken it; a thread that hangs ends with this process.

    Each by itself, since apprise does not say which one of several was refused: the others would get it again.
    """
    apprise, tried, taken, is_over = _apprise(), list[str](), list[str](), threading.Event()

    def send() -> None:
        with suppress(Exception):  # the traceback of a thread has the address, and what is not done is not sent
            to = apprise.Apprise()
            if not to.add(url):
                return
            for recipient, service in _recipients(to):
                tried.append(recipient)
                if recipient not in message.taken and _is_taken(apprise, service, message):
                    taken.append(recipient)
            is_over.set()

    thread = threading.Thread(target=send, name="notice", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    now = tuple(taken)
    return _Delivery(is_over.is_set() and {*tried} <= {*message.taken, *now}, now)


def _recipients(to: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each recipient of each service by its digest, with the service that sends to that one alone until the next."""
    for service in to:
        targets = getattr(service, "targets", None)
        # As many requests as targets: else the service itself sends to several at once.
        if isinstance(targets, list) and len(targets) == len(service) > 1:
            for target in targets:
                service.targets = [target]
                yield digest(repr(target)), service
        else:
            yield digest(service.url()), service


def _is_taken(apprise: ModuleType, service: object, message: Message) -> bool:
    kind = apprise.NotifyType.WARNING if message.urgency == "act" else apprise.NotifyType.INFO
    text = apprise.NotifyFormat.TEXT  # else a mail has it as HTML, in which lines and what looks like a tag are lost
    body = message.body or message.title
    return bool(apprise.Apprise(service).notify(body, title=message.title, notify_type=kind, body_format=text))
