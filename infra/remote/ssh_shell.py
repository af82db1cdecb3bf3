"""A machine's shell over SSH: scripts that are proven to have run, and repetition after lost connections."""

import secrets
import shlex
from collections.abc import Callable
from typing import Self, TypeVar

from bench.errors import (
    LoginRefusedError,
    LostConnectionError,
    NotReadyError,
    RemoteCommandError,
    SilentHostError,
    TransferError,
    UnreachableHostError,
)
from infra.clock import SystemClock, retry
from infra.processes.command import CommandResult
from infra.remote.host import Access
from infra.remote.ssh_connection import CONNECT_TIMEOUT_S, SshConnection
from infra.reporting import Say

STEP_TIMEOUT_S = 60.0
PATIENCE_S = 120.0  # how long a step is repeated after lost connections
RETRY_S = 1.0
SHOWN_CHARS = 80  # of a script, in an error
LAST_CHARS = 1500  # of a failed command's output

T = TypeVar("T")
LOST = (UnreachableHostError, LostConnectionError, SilentHostError)


class SshShell:
    """A machine over SSH. The first call connects, and any later call whose connection is gone."""

    def __init__(self, access: Access, *, patience_s: float = PATIENCE_S, connect_s: float = CONNECT_TIMEOUT_S) -> None:
        self.access = access
        self._patience_s = patience_s
        self._connect_s = connect_s
        self._line: SshConnection | None = None

    def run(
        self, script: str, *, timeout_s: float = STEP_TIMEOUT_S, stdin: bytes = b"", say: Say | None = None
    ) -> CommandResult:
        """Run a shell script to its end. Raises NotReadyError where another command was run in its place.

        A line that only the machine's shell can compose proves that the script ran, and holds its exit code: sshd's
        exit code is also 0 while a first boot replaces every command by a message.
        """
        head, tail = secrets.token_hex(8), secrets.token_hex(8)
        whole = f"(\n{script}\n)\nprintf '\\n%s%s %d\\n' {head} {tail} $?"
        output = _Output(say)
        line = self._connected()
        with line.step(f"`{_short(script)}`", timeout_s):
            err = line.execute(f"sh -c {shlex.quote(whole)}", stdin, output.add)
        text = output.end()
        out, found, code = text.rpartition(f"\n{head}{tail} ")
        if not found:
            raise NotReadyError(
                f"{self.access} accepted the login but did not run the command; its output: {_last(text) or 'none'!r}"
            )
        return CommandResult(_short(script), int(code), out, err.decode(errors="replace"))

    def output_of(self, script: str, *, timeout_s: float = STEP_TIMEOUT_S) -> str:
        """The output of a script that may be repeated; raises RemoteCommandError with its output where it fails."""
        return self._with_retries(lambda: self._checked(script, timeout_s))

    def _checked(self, script: str, timeout_s: float = STEP_TIMEOUT_S, stdin: bytes = b"") -> str:
        ran = self.run(script, timeout_s=timeout_s, stdin=stdin)
        if ran.exit_code != 0:
            last = _last(ran.err) or _last(ran.out) or "it printed nothing"
            raise RemoteCommandError(
                f"`{_short(script)}` on {self.access} failed with exit code {ran.exit_code}: {last}"
            )
        return ran.out

    def close(self) -> None:
        """Disconnect; the next call connects again."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def with_patience(self, patience_s: float) -> Self:
        """The same machine, with another time limit for lost connections."""
        return type(self)(self.access, patience_s=patience_s, connect_s=min(self._connect_s, patience_s))

    def _connected(self) -> SshConnection:
        if self._line is None or not self._line.is_open:
            self.close()
            self._line = SshConnection(self.access, self._connect_s)
        return self._line

    def _with_retries(self, step: Callable[[], T]) -> T:
        """Repeat a step after lost connections until the time is over; the last error is raised then."""
        return retry(SystemClock(), RETRY_S, step, (*LOST, TransferError), self._patience_s)


def wait_until_ready(host: SshShell, patience_s: float, is_booted: str = "true") -> None:
    """Wait until a machine runs commands, and until `is_booted` exits with 0, which ends its first boot.

    Its key may be installed late, so a refused login is repeated until `patience_s` is over; the last error is raised
    then. A wrong host key raises HostKeyError at once.
    """
    passing = (*LOST, LoginRefusedError, NotReadyError)

    def require_ready() -> None:
        try:
            result = host.run(is_booted)
        except passing:
            host.close()
            raise
        if not result.is_good:
            host.close()
            raise NotReadyError(f"the first boot of {host.access} has not finished: `{is_booted}` fails there")

    retry(SystemClock(), RETRY_S, require_ready, passing, patience_s)


class _Output:
    """A command's output, passed on line by line and stored; the sentinel's line is not passed on."""

    def __init__(self, say: Say | None) -> None:
        self._say = say
        self._kept: list[bytes] = []
        self._open = b""

    def add(self, chunk: bytes) -> None:
        self._kept.append(chunk)
        if self._say is None:
            return
        *lines, self._open = (self._open + chunk).split(b"\n")
        for line in lines:
            if line:
                self._say(line.decode(errors="replace"))

    def end(self) -> str:
        return b"".join(self._kept).decode(errors="replace")


def _last(text: str) -> str:
    return text.strip()[-LAST_CHARS:]


def _short(script: str) -> str:
    line = script.strip().splitlines()[0]
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 3] + "..."
