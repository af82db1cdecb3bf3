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
TICK_S = 0.05  # how often whoever waits for them may look around


class PartFailedError(MeterError):
    """A forked process ended without its value; its own words stand on standard error."""

    exit_code = 1


@dataclass(slots=True)
class Fork:
    """A child at work, and what it has sent so far."""

    pid: int
    pipe: int
    sent: bytearray = field(default_factory=bytearray)


def fork_each(count: int, task: Callable[[int], Any]) -> list[Fork]:
    """Start `count` children; child i does task(i) and sends what it returns to whoever gathers."""
    sys.stdout.flush()
    sys.stderr.flush()
    forks: list[Fork] = []
    for number in range(count):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            for inherited in (reader, *(fork.pipe for fork in forks)):
                os.close(inherited)
            _obey(task, number, writer)
        os.close(writer)
        forks.append(Fork(pid, reader))
    return forks


def _obey(task: Callable[[int], Any], number: int, writer: int) -> None:
    """Be a child, to the end of the process."""
    code = 1
    try:
        for ignored in (signal.SIGINT, signal.SIGTERM):  # whoever forked us hears them, and tells us
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


def gather(forks: list[Fork], look_around: Callable[[], None] = lambda: None) -> list[Any]:
    """Wait for every child and return what each has sent, in their order; a MeterError that one sent is a value too.

    `look_around` is called at least each TICK_S. Raises PartFailedError where a child ended without its value. However
    it ends, no child is left.
    """
    try:
        for _ in _until_silent(forks):
            look_around()
        values = [_value(fork) for fork in forks]
    finally:
        for fork in forks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(fork.pid, signal.SIGKILL)  # nothing, where it has ended
            with contextlib.suppress(ChildProcessError):
                os.waitpid(fork.pid, 0)
            with contextlib.suppress(OSError):
                os.close(fork.pipe)
    return values


def _until_silent(forks: list[Fork]) -> Iterator[None]:
    """Read all pipes to their end, and yield between the reads."""
    talking = {fork.pipe: fork for fork in forks}
    while talking:
        ready, _none, _no_more = select.select(list(talking), [], [], TICK_S)
        for pipe in ready:
            said = os.read(pipe, _PIPE_BYTES)
            talking[pipe].sent += said
            if not said:
                del talking[pipe]
        yield


def _value(fork: Fork) -> Any:
    try:
        return pickle.loads(bytes(fork.sent))  # noqa: S301 -- from our own child
    except (EOFError, pickle.UnpicklingError) as error:
        raise PartFailedError(f"A process of the meter ({fork.pid}) ended before it had said everything.") from error
