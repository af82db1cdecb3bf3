"""Work that is killed before each of its changes of files and requests, as a power cut or kill -9 would do."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from tests.forked import ended, forked

# What the interpreter reports before it changes a file or folder. `open` counts only where it is for writing.
CHANGES = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.truncate", "shutil.rmtree"}
SENT = "http.client.send"  # a part of a request, which may change what another computer has


def killed_before(change: int, below: Path, work: Callable[..., object], *arguments: Any) -> int:
    """Run in a child that is killed before this change of what is below a folder: 0 where it has fewer changes."""
    return ended(forked(_die, change, below, work, arguments))


def each_kill(below: Path, work: Callable[..., object], *arguments: Any, every: int = 1) -> Iterator[int]:
    """Kill the work before each change in turn, until it is done; the caller repairs what each kill left."""
    for change in count(step=every):
        code = killed_before(change, below, work, *arguments)
        assert code in (0, -signal.SIGKILL)
        if code == 0:
            return
        yield change


def _die(change: int, below: Path, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    changes = count()

    def hook(event: str, seen: tuple[Any, ...]) -> None:
        if event != SENT and (event not in CHANGES or not str(seen[0]).startswith(str(below))):
            return
        if event == "open" and not seen[2] & (os.O_WRONLY | os.O_RDWR):
            return
        if next(changes) == change:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)  # of this process, which ends
    work(*arguments)
