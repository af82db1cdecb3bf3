"""The stream of a night's events in this process: tasks emit them; a terminal, a log and Prefect's artifact follow."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bench.night_progress import Event, LoadProgress, NightState, StageBegan, StageEnded, StageReported

Follower = Callable[[Event, NightState], None]
_CURRENT = ContextVar[int | None]("stage", default=None)


class ProgressStream:
    """Events in their order, the state that they add up to, and who follows them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state = NightState()
        self._numbers = itertools.count()
        self._followers: list[Follower] = []

    def emit(self, event: Event) -> None:
        """Take an event into the state and show it to the followers; one whose output is gone is left out from then."""
        with self.lock:
            self.state.apply(event)
            for follower in tuple(self._followers):
                try:
                    follower(event, self.state)
                except OSError:
                    self._followers.remove(follower)

    @contextmanager
    def following(self, follower: Follower) -> Iterator[None]:
        """Show each event of this block to a follower, which must neither wait nor emit."""
        self._followers.append(follower)
        try:
            yield
        finally:
            if follower in self._followers:
                self._followers.remove(follower)

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Emit the beginning and the end of a stage."""
        number, is_failed = next(self._numbers), True
        token = _CURRENT.set(number)
        self.emit(StageBegan(number, title, time.monotonic()))
        try:
            yield
            is_failed = False
        finally:
            _CURRENT.reset(token)
            self.emit(StageEnded(number, time.monotonic(), is_failed))

    def report(self, *, line: str | None = None, load: LoadProgress | None = None) -> None:
        """Emit what the stage of this thread does, or how far its load is."""
        self.emit(StageReported(_CURRENT.get(), line, load))


STREAM = ProgressStream()  # of this process, which runs one night at a time
