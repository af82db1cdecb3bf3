"""An exclusive lock between processes, which the kernel frees when its holders exit."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from infra.clock import SystemClock, poll
from infra.processes import cancellation
from infra.reporting import Say

POLL_S = 0.2


@contextlib.contextmanager
def exclusive_lock(lock_file: Path, say: Say, what: str) -> Iterator[int]:
    """Hold this lock, after waiting for its holder, and yield its file descriptor for programs to inherit.

    `what` is what the holder does, for the line that reports the wait. Cancelling this work ends the wait.
    """
    with lock_file.open("w", encoding="utf-8") as held:
        if not try_lock(held.fileno()):
            say(f"another process is {what} (it holds {lock_file}); waiting for it")
            poll(SystemClock(), POLL_S, lambda: try_lock(held.fileno()))
        yield held.fileno()


def try_lock(file: int) -> bool:
    """Lock an open file unless another process holds it; raises CancelledError where this work is cancelled."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        cancellation.check()
        return False
    return True
