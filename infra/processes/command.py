"""Run a program of the machine's own and read what it says."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from infra.processes import cancellation

END_PATIENCE_S = 2.0


@dataclass(frozen=True)
class ProgramResult:
    """How a tool ended and what it said; `exit_code` is None where it had to be given up."""

    argv: tuple[str, ...]
    exit_code: int | None
    out: str
    err: str

    @property
    def is_good(self) -> bool:
        """Whether it ended well."""
        return self.exit_code == 0

    @property
    def why(self) -> str:
        """How it failed and in which words, for a sentence."""
        words = (self.err.strip() or self.out.strip() or "it said nothing").splitlines()
        ended = "did not end in time" if self.exit_code is None else f"ended with exit code {self.exit_code}"
        return f"`{' '.join(self.argv)}` {ended}: {' | '.join(words[-3:])[:500]}"


def is_there(name: str) -> bool:
    """Whether the machine has this program."""
    return shutil.which(name) is not None


def run_tool(argv: Sequence[str], *, timeout_s: float) -> ProgramResult:
    """Run a program to its end; one that hangs is killed, one that is not there fails like any other.

    A tool that asks a wedged GPU sleeps in the kernel and cannot even be killed: it is left behind then.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return ProgramResult(tuple(argv), 127, "", str(error))
    try:
        with cancellation.waiting_for(process):
            out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _give_up(process)
        return ProgramResult(tuple(argv), None, "", f"given up after {timeout_s:g} s")
    return ProgramResult(tuple(argv), process.returncode, out, err)


def _give_up(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=END_PATIENCE_S)
