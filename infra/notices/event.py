"""What a person is notified of."""

from dataclasses import dataclass
from typing import Literal

Urgency = Literal["act", "know"]  # a person must act, or should know


def storable(text: str) -> str:
    """A text that a database and an address take: the name of a file need not be UTF-8."""
    return text.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class Event:
    """One thing that happened, or that stands until it ends.

    `key` names it for ever, such as `data.stale/nightly`: while it stands under the same title and reason, it is sent
    once.
    """

    key: str
    urgency: Urgency
    title: str  # one line: what happened, to what
    body: str = ""  # what it means and what to do next
    link: str | None = None
    reason: str = ""  # what else than the title must be the same for it to be the same event, such as an error
    cloud: str | None = None  # where a machine of this event is billed; it is over once that was searched

    def __post_init__(self) -> None:
        """Make its texts storable."""
        for name in ("key", "title", "body", "reason"):
            object.__setattr__(self, name, storable(getattr(self, name)))

    @property
    def kind(self) -> str:
        """The first part of the key; with `nightbench.` before it, the name of its event in Prefect."""
        return self.key.partition("/")[0]

    @property
    def text(self) -> str:
        """The body with its link."""
        return self.body if self.link is None else f"{self.body}\n{self.link}".strip()


@dataclass(frozen=True)
class Message:
    """A text for one address."""

    number: int
    address: str  # the digest of its URL, which may hold a password
    title: str
    body: str
    urgency: Urgency
    tries: int
    taken: frozenset[str] = frozenset()  # the digests of those of several recipients at the address that have it
