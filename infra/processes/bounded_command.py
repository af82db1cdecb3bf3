"""Run a program that is not ours: what it reads is given, and its time and its output have limits."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from infra.processes import cancellation
from infra.processes.command import END_PATIENCE_S, CommandResult
from infra.processes.environment import ChildEnvironment

LOOK_S = 0.05  # between two looks at the size of the output
OUTLIVES_US_S = 1.0  # after the time limit: a program whose starter was killed is killed then


@dataclass(frozen=True)
class Limits:
    """The most seconds that a program may take, and the most bytes that it may write to each of stdout and stderr."""

    seconds: float
    output_bytes: int


class KilledError(OSError):
    """A program ran and was killed before its end: it wrote more than it may, or it could not be watched."""


def run_bounded(argv: Sequence[str], given: bytes, environment: ChildEnvironment, limits: Limits) -> CommandResult:
    """Run a program to its end, with `given` as its standard input; then kill what is left of its process group.

    A program that exceeds a limit is killed with its process group, also where this process was killed before. Its
    `exit_code` is None where its time was over. Raises KilledError, and another OSError where it cannot be started.
    """
    # `timeout` enforces the limit where this process no longer can, and passes the exit code on.
    guard = ["timeout", "-s", "KILL", f"{limits.seconds + OUTLIVES_US_S:g}"]
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(given)
        source.seek(0)
        # Files, since a pipe stays open as long as anything that the program started.
        process = subprocess.Popen(
            [*guard, *argv], stdin=source, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        try:
            with cancellation.waiting_for(process):
                is_over = _wait(process, (out, err), limits)
        except KilledError:
            raise
        except OSError as error:
            raise KilledError(f"it could not be watched ({error})") from error
        finally:
            _end_group(process)
        exit_code = process.returncode if is_over else None
        return CommandResult(shlex.join(argv), exit_code, _text(out, limits), _text(err, limits))


def _wait(process: subprocess.Popen[bytes], written: Sequence[IO[bytes]], limits: Limits) -> bool:
    """Whether a program exits within its time. It is not waited for here, so that its pid stays its own."""
    until, exited, pid_file = time.monotonic() + limits.seconds, select.poll(), os.pidfd_open(process.pid)
    exited.register(pid_file, select.POLLIN)
    try:
        while True:
            left = until - time.monotonic()
            is_over = bool(exited.poll(1000 * max(0.0, min(LOOK_S, left))))
            if max(os.fstat(one.fileno()).st_size for one in written) > limits.output_bytes:
                raise KilledError(f"it wrote more than {limits.output_bytes} bytes")
            if is_over or left <= 0:
                return is_over
    finally:
        os.close(pid_file)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program's process group; its leader has not been waited for, so that the group is still its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_PATIENCE_S)


def _text(file: IO[bytes], limits: Limits) -> str:
    file.seek(0)
    return file.read(limits.output_bytes).decode(errors="replace")
