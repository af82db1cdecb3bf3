"""How work reports its progress: lines of text for a person, and how far a load is."""

from collections.abc import Callable

from bench.night_progress import LoadProgress
from bench.printable import printable

Say = Callable[[str], None]
Progress = Callable[[LoadProgress], None]


def silent(_text: str) -> None:
    """Discard a line."""


def no_progress(_load: LoadProgress) -> None:
    """Discard how far a load is."""


class Reporter:
    """Receives lines of text, without their control characters, and how far a load is."""

    def __init__(self, say: Say, progress: Progress = no_progress) -> None:
        self._say = say
        self.progress = progress

    def say(self, line: str) -> None:
        """Report a line, which a machine may have written."""
        self._say(printable(line))
