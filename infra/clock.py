"""The time, passed in: what waits for a cloud can then be tested without waiting."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar, overload

T = TypeVar("T")


class Clock(Protocol):
    """What time it is, and waiting."""

    def now(self) -> datetime:
        """The time, aware UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed, at once where they are 0 or less."""
        ...


class WallClock:
    """The computer's own time, which may be corrected at any moment: for deadlines that other computers share."""

    def now(self) -> datetime:
        """The time, aware UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))


class SteadyClock(WallClock):
    """The computer's time without later corrections: for timeouts on this computer."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC) - timedelta(seconds=time.monotonic())

    def now(self) -> datetime:
        """The time, aware UTC; it never runs backwards."""
        return self._began + timedelta(seconds=time.monotonic())


@overload
def poll(clock: Clock, every_s: float | Callable[[], float], until: Callable[[], T | None]) -> T: ...
@overload
def poll(
    clock: Clock, every_s: float | Callable[[], float], until: Callable[[], T | None], within_s: float | None
) -> T | None: ...
def poll(
    clock: Clock, every_s: float | Callable[[], float], until: Callable[[], T | None], within_s: float | None = None
) -> T | None:
    """Call `until` every `every_s` seconds and return its first result that is neither None nor False.

    Returns None where `within_s` has passed without one; `until` is called at least once, and once more at the end.
    """
    began = clock.now()
    while True:
        result = until()
        if result is not None and result is not False:
            return result
        if within_s is not None and seconds_since(began, clock) >= within_s:
            return None
        clock.sleep(every_s() if callable(every_s) else every_s)


def retry(clock: Clock, every_s: float, step: Callable[[], T], on: tuple[type[Exception], ...], within_s: float) -> T:
    """The result of the first call of `step` that raises none of these errors.

    A step that would begin later than `within_s` is not tried: the last error is raised.
    """
    began = clock.now()
    while True:
        try:
            return step()
        except on:
            if seconds_since(began, clock) + every_s > within_s:
                raise
        clock.sleep(every_s)


def seconds_since(began: datetime, clock: Clock) -> float:
    """How much time has passed."""
    return (clock.now() - began).total_seconds()


def seconds_until(moment: datetime, clock: Clock) -> float:
    """How much time is left; negative where the moment has passed."""
    return -seconds_since(moment, clock)
