"""Do something that only one process may do at a time; the kernel frees the lock when its holders die."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from infra.processes import cancellation
from infra.reporting import Say

POLL_S = 0.2


@contextlib.contextmanager
def alone(lock_file: Path, say: Say, what: str) -> Iterator[int]:
    """Hold this lock, waiting for whoever has it, and give its file number for programs to inherit.

    `what` is what the other one does, for the line that says why we wait. Stopping this work ends the waiting.
    """
    with lock_file.open("w", encoding="utf-8") as held:
        has_said = False
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                cancellation.check()
            if not has_said:
                say(f"another process is {what} (it holds {lock_file}); waiting for it")
                has_said = True
            time.sleep(POLL_S)
        yield held.fileno()
