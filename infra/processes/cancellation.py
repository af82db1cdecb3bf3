"""Cancel work from outside: work beside other work that failed is not waited for, and leaves no process behind.

Everything slow on a machine waits for a program it started. Cancelling therefore kills that program. The work itself
raises CancelledError the next time it starts or leaves a program, or calls `check`.
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


class CancelledError(Exception):
    """The work was cancelled: other work beside it failed, or its time was over."""


class CancelToken:
    """Cancels one piece of work, and kills the programs that it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: set[Process] = set()
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the work now; may be repeated."""
        with self._lock:
            self.is_cancelled = True
            for program in self._programs:
                _kill(program)

    def check(self) -> None:
        """Raise CancelledError once the work is cancelled."""
        if self.is_cancelled:
            raise CancelledError

    def add(self, program: Process) -> None:
        """Add a program that the work waits for; it is killed at once if the work is cancelled already."""
        with self._lock:
            self._programs.add(program)
            if self.is_cancelled:
                _kill(program)

    def remove(self, program: Process) -> None:
        """Remove a program that has exited."""
        with self._lock:
            self._programs.discard(program)


# In a variable of the context and not in every signature: work does not differ by whether something runs beside it.
_CURRENT: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)


def current() -> CancelToken:
    """The token of the work that calls this; one that is never cancelled, where the work has none.

    A thread does not inherit it: work that continues in other threads reads it first and passes it on.
    """
    return _CURRENT.get() or CancelToken()


@contextlib.contextmanager
def cancellable(token: CancelToken) -> Iterator[None]:
    """Let this token cancel what is done in the block."""
    previous = _CURRENT.set(token)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(previous)


def check() -> None:
    """Raise CancelledError where this work is cancelled."""
    current().check()


@contextlib.contextmanager
def waiting_for(program: Process) -> Iterator[None]:
    """While the block waits for this program, cancelling the work kills it; the block then raises CancelledError."""
    token = current()
    token.add(program)
    try:
        yield
    finally:
        token.remove(program)
        token.check()


def _kill(program: Process) -> None:
    """Kill a program, with its whole session where it leads one."""
    if program.poll() is not None:
        return  # its pid may belong to another process by now
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(program.pid) == program.pid:
            os.killpg(program.pid, signal.SIGKILL)
        else:
            program.kill()
