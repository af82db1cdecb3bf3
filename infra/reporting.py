"""Who is told what is being done: a line of text for a person, and the share done of work that has an end."""

from collections.abc import Callable
from dataclasses import dataclass

Say = Callable[[str], None]


def silent(_text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Reporter:
    """Receives lines of text, and progress as a share from 0 to 1."""

    say: Say
    progress: Callable[[float], None]
