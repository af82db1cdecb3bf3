"""How a night's process ends: by every signal on the same road, and without a page of noise."""

import atexit
import os
import signal
import sys
from pathlib import Path

from infra.processes import detached

INTERRUPTED, TERMINATED = 130, 143


def end_well() -> None:
    """Make every way of stopping a night take the same road: `finally`, then what runs at exit.

    Without it SIGTERM, or a terminal that is closed, ends Python at once, and the API that Prefect started for this run
    stays behind. A shell without job control ignores SIGINT in what it starts in the background; a night is stopped by
    it all the same.
    """
    hush_at_exit()
    detached.own_children()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup says that a night outlives its terminal
        signal.signal(signal.SIGHUP, lambda _number, _frame: sys.exit())


def code_of(stop: KeyboardInterrupt | SystemExit) -> int:
    """The exit code for a night that was stopped, as a shell would give it for the signal."""
    return INTERRUPTED if isinstance(stop, KeyboardInterrupt) else TERMINATED


def hush_at_exit() -> None:
    """Close stderr after the last exit handler, where it was called before Prefect's are registered.

    What comes after is a page by DuckDB's binding about objects that Prefect's threads keep.
    """
    atexit.register(_hush)


def _hush() -> None:
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
