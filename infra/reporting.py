"""How work reports its progress: lines of text for a person, and the share done."""

from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[str], None]


def silent(_text: str) -> None:
    """Discard a line."""


def _ignore(_share: float) -> None:
    """Drop the progress."""


@dataclass(frozen=True)
class Reporter:
    """Receives lines of text, and progress as a share from 0 to 1."""

    say: Say
    progress: Callable[[float], None] = field(default=_ignore)
