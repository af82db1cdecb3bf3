"""The time, passed in: what waits for a cloud can then be tested without waiting.

The wall clock dates what others read and what must outlive a process: a heartbeat, a cost. The monotonic clock measures
every wait and timeout inside one process, so a step of the wall clock changes none of them.

A lease expires by the clock of the cloud or the host that it is rented from: no step moves a reaper's deadline. A
watchdog counts the time that has passed, so no step moves it either. A machine's own switch acts at the earlier of both
times, so a step back does not delay it.
"""

import itertools
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeVar, overload

T = TypeVar("T")
STEP_S = 1.0


class Clock(Protocol):
    """What time it is, and waiting."""

    def now(self) -> datetime:
        """The wall clock's time, aware UTC; it may be stepped at any moment."""
        ...

    def monotonic(self) -> float:
        """Seconds from a moment that only this process knows; they only grow, whatever happens to the wall clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed, at once where they are 0 or less."""
        ...


class SystemClock:
    """The clocks of this computer."""

    def now(self) -> datetime:
        """The time, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait, in steps after each of which an exception can be raised in a thread."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, STEP_S))


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
    began_s = clock.monotonic()
    while True:
        result = until()
        if result is not None and result is not False:
            return result
        if within_s is not None and clock.monotonic() - began_s >= within_s:
            return None
        clock.sleep(every_s() if callable(every_s) else every_s)


def growing(first_s: float, max_s: float) -> Callable[[], float]:
    """Pauses for `poll`: `first_s` at first, and each twice the one before, up to `max_s`."""
    pauses = (min(max_s, first_s * 2.0**number) for number in itertools.count())
    return lambda: next(pauses)


def retry(clock: Clock, every_s: float, step: Callable[[], T], on: tuple[type[Exception], ...], within_s: float) -> T:
    """The result of the first call of `step` that raises none of these errors.

    A step that would begin later than `within_s` is not tried: the last error is raised.
    """
    began_s = clock.monotonic()
    while True:
        try:
            return step()
        except on:
            if clock.monotonic() - began_s + every_s > within_s:
                raise
        clock.sleep(every_s)


def finish_within(seconds: float, work: Callable[[], T]) -> T:
    """The result of this work, or its exception; TimeoutError after so many seconds.

    The work runs in a thread of its own, which is then left to itself: only for work that changes nothing elsewhere.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="nightbench answer")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"not finished after {seconds:g} s")
    return results[0]
