"""Run a program on this computer and read its output."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from infra.processes import cancellation
from infra.processes.environment import TOOLS, child_environment

END_PATIENCE_S = 2.0
NOT_FOUND = 127  # as a shell reports a program that does not exist


@dataclass(frozen=True)
class CommandResult:
    """A command, here or on another machine, and how it ended; `exit_code` is None where it was killed at a timeout."""

    command: str
    exit_code: int | None
    out: str
    err: str

    @property
    def is_good(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    @property
    def why(self) -> str:
        """How it failed, with its last lines of output, as a sentence."""
        lines = (self.err.strip() or self.out.strip() or "it printed nothing").splitlines()
        ended = "did not exit in time" if self.exit_code is None else f"failed with exit code {self.exit_code}"
        return f"`{self.command}` {ended}: {' | '.join(lines[-3:])[:500]}"


def is_there(name: str) -> bool:
    """Whether this computer has a program of this name."""
    return shutil.which(name) is not None


def run_tool(argv: Sequence[str], *, timeout_s: float) -> CommandResult:
    """Run a program to its end; one that hangs is killed, and one that does not exist fails like any other.

    A tool that queries a wedged GPU sleeps in the kernel and cannot even be killed: it is left behind then.
    """
    command = shlex.join(argv)
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=child_environment(also=TOOLS),
            start_new_session=True,
        )
    except OSError as error:
        return CommandResult(command, NOT_FOUND, "", str(error))
    try:
        with cancellation.waiting_for(process):
            out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return CommandResult(command, None, "", f"killed after {timeout_s:g} s")
    return CommandResult(command, process.returncode, out, err)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=END_PATIENCE_S)
