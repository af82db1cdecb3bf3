"""Forked processes that each do a part of the work and send back one value."""

import contextlib
import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from meter.errors import MeterError

_PIPE_BYTES = 1 << 20
TICK_S = 0.05  # how often the waiting parent runs its callback


class PartFailedError(MeterError):
    """A forked process exited without sending its value; its traceback is on standard error."""

    exit_code = 1


@dataclass(slots=True)
class Fork:
    """A child at work, and what it has sent so far."""

    pid: int
    pipe: int
    sent: bytearray = field(default_factory=bytearray)


def fork_each(count: int, task: Callable[[int], Any]) -> list[Fork]:
    """Start `count` children; child i runs task(i) and sends the returned value to gather()."""
    sys.stdout.flush()
    sys.stderr.flush()
    forks: list[Fork] = []
    for number in range(count):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            for inherited in (reader, *(fork.pipe for fork in forks)):
                os.close(inherited)
            _run_child(task, number, writer)
        os.close(writer)
        forks.append(Fork(pid, reader))
    return forks


def _run_child(task: Callable[[int], Any], number: int, writer: int) -> None:
    """Run the task in the child process, send its value, and exit."""
    code = 1
    try:
        for ignored in (signal.SIGINT, signal.SIGTERM):  # the parent receives them and stops us
            signal.signal(ignored, signal.SIG_IGN)
        try:
            value: Any = task(number)
        except MeterError as error:
            value = error
        with open(writer, "wb", closefd=True) as pipe:
            pickle.dump(value, pipe, protocol=pickle.HIGHEST_PROTOCOL)
        code = 0
    except BaseException:  # noqa: BLE001 -- nothing of this process may go on in the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def gather(forks: list[Fork], on_tick: Callable[[], None] = lambda: None) -> list[Any]:
    """Wait for every child and return their values in order; a MeterError raised in a child is a value too.

    Calls `on_tick` at least every TICK_S. Raises PartFailedError if a child exits without a value. No child outlives
    this call.
    """
    try:
        for _ in _read_until_closed(forks):
            on_tick()
        values = [_value(fork) for fork in forks]
    finally:
        for fork in forks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(fork.pid, signal.SIGKILL)  # has no effect if it has exited
            with contextlib.suppress(ChildProcessError):
                os.waitpid(fork.pid, 0)
            with contextlib.suppress(OSError):
                os.close(fork.pipe)
    return values


def _read_until_closed(forks: list[Fork]) -> Iterator[None]:
    """Read all pipes to their end, and yield between the reads."""
    open_pipes = {fork.pipe: fork for fork in forks}
    while open_pipes:
        ready, _none, _no_more = select.select(list(open_pipes), [], [], TICK_S)
        for pipe in ready:
            received = os.read(pipe, _PIPE_BYTES)
            open_pipes[pipe].sent += received
            if not received:
                del open_pipes[pipe]
        yield


def _value(fork: Fork) -> Any:
    try:
        return pickle.loads(bytes(fork.sent))  # noqa: S301 -- from our own child
    except (EOFError, pickle.UnpicklingError) as error:
        raise PartFailedError(
            f"Meter process {fork.pid} exited before it sent its whole result; its traceback is above."
        ) from error
