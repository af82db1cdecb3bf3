"""How work reports its progress: lines of text for a person, and the share done."""

from collections.abc import Callable

from bench.printable import printable

Say = Callable[[str], None]


def silent(_text: str) -> None:
    """Discard a line."""


def no_progress(_share: float) -> None:
    """Discard the share done."""


class Reporter:
    """Receives lines of text, without their control characters, and progress as a share from 0 to 1."""

    def __init__(self, say: Say, progress: Callable[[float], None] = no_progress) -> None:
        self._say = say
        self.progress = progress

    def say(self, line: str) -> None:
        """Report a line, which a machine may have written."""
        self._say(printable(line))
