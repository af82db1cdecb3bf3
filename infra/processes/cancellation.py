"""Stop work from outside: what runs beside work that failed is not waited for, and leaves no process behind.

Everything slow on a machine waits for a program it started. So stopping work means to end that program and to have the
work notice; it notices wherever it starts or leaves one, or asks `check`.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

Process = subprocess.Popen[Any]


class StoppedError(Exception):
    """The work was stopped, because other work beside it failed."""


class Stop:
    """Asks for the end of one piece of work, and of the programs that it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: set[Process] = set()
        self.is_asked = False

    def ask(self) -> None:
        """End it now; may be repeated."""
        with self._lock:
            self.is_asked = True
            for program in self._programs:
                _kill(program)

    def add(self, program: Process) -> None:
        """A program that the work waits for from now on; it is ended at once where the work was stopped already."""
        with self._lock:
            self._programs.add(program)
            if self.is_asked:
                _kill(program)

    def remove(self, program: Process) -> None:
        """A program that has ended."""
        with self._lock:
            self._programs.discard(program)


# In a variable of the context and not in every signature: work does not differ by whether something runs beside it.
_CURRENT: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextlib.contextmanager
def under(stop: Stop) -> Iterator[None]:
    """Let this stop end what is done in the block."""
    token = _CURRENT.set(stop)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(token)


def check() -> None:
    """Raise StoppedError where the end of this work was asked for."""
    stop = _CURRENT.get()
    if stop is not None and stop.is_asked:
        raise StoppedError


@contextlib.contextmanager
def waiting_for(program: Process) -> Iterator[None]:
    """While the block waits for this program, stopping the work ends it; after that the block raises StoppedError."""
    stop = _CURRENT.get()
    if stop is None:
        yield
        return
    stop.add(program)
    try:
        yield
    finally:
        stop.remove(program)
        check()


def _kill(program: Process) -> None:
    """End a program, with its whole session where it leads one."""
    if program.poll() is not None:
        return  # its number may be somebody else's by now
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(program.pid) == program.pid:
            os.killpg(program.pid, signal.SIGKILL)
        else:
            program.kill()
