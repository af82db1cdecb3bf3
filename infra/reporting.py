"""Who is told what is being done: a line of text for a person, and the share done of work that has an end."""

from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[str], None]


def silent(_text: str) -> None:
    """Tell nobody."""


def _ignore(_share: float) -> None:
    """Drop the progress."""


@dataclass(frozen=True)
class Reporter:
    """Receives lines of text, and progress as a share from 0 to 1."""

    say: Say
    progress: Callable[[float], None] = field(default=_ignore)
