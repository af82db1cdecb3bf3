"""The clocks of a storm's processes: one that is corrected while it runs, and one that follows the others."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from infra.clock import Clock
from tests.emulators.virtual_clock import VirtualClock


class WanderingClock:
    """A computer's clock that is corrected while it runs; waiting is not affected."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self.off_s = 0.0

    def step(self, seconds: float) -> None:
        self.off_s = seconds

    def now(self) -> datetime:
        return self._inner.now() + timedelta(seconds=self.off_s)

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class FollowingClock(VirtualClock):
    """Waits until others have moved the clock; once there are no others, it moves the clock by itself."""

    def __init__(self, path: Path, are_others_done: Callable[[], bool]) -> None:
        super().__init__(path)
        self._are_others_done = are_others_done

    def sleep(self, seconds: float) -> None:
        due = self.monotonic() + seconds
        while self.monotonic() < due and not self._are_others_done():
            time.sleep(0.01)
        super().sleep(due - self.monotonic())
