"""The time, passed in: what waits for a cloud can then be tried against a clock that nobody has to sit through."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and waiting."""

    def now(self) -> datetime:
        """The time, aware UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed; nothing is waited for where they are 0 or less."""
        ...


class WallClock:
    """The computer's own time."""

    def now(self) -> datetime:
        """The time, aware UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))
