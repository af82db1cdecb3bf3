"""Child processes, forked from a small process with everything imported, and the emulator that they share."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

CHILD_PATIENCE_S = 1800.0  # a child that hangs is noticed; one on a busy computer is not taken for one


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.chaos.night", "tests.chaos.storm", "tests.chaos.warm_up"])
    return context


def start(what: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Run a function in a forked process without threads, which can be killed at any moment.

    It starts no watchdogs: they would live by this computer's clock, and release what a test has killed on the cloud's.
    """
    child = _context().Process(target=_run_without_watchdogs, args=(what, *arguments), daemon=False)
    child.start()
    return child


def _run_without_watchdogs(what: Callable[..., None], *arguments: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infra.leases.watched_ledger.start_watchdog", lambda *_lease: None)
        what(*arguments)


def wait_for(child: BaseProcess) -> int:
    """How a child ended: its exit code, or minus the signal. AssertionError where it does not end."""
    child.join(CHILD_PATIENCE_S)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"a child did not end within {CHILD_PATIENCE_S:.0f} s")
    return child.exitcode


def end_well(child: BaseProcess) -> None:
    """Wait for a reaper or a watchdog; AssertionError where it crashed."""
    code = wait_for(child)
    assert code in {0, KILLED}, f"a reaper or a watchdog ended with exit code {code}"


def run(what: Callable[..., None], *arguments: Any) -> int:
    """Run a function in a process of its own to its end."""
    return wait_for(start(what, *arguments))


@contextmanager
def beside(what: Callable[..., None], *arguments: Any, end: Path) -> Iterator[BaseProcess]:
    """A process that runs until the file `end` exists."""
    child = start(what, *arguments, end)
    try:
        yield child
    finally:
        end.touch()
        wait_for(child)


def let_it_catch_up(seconds: float = 0.1) -> None:
    """Give other processes a moment of real time."""
    time.sleep(seconds)


KILLED = -signal.SIGKILL
