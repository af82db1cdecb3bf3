"""The Host port: commands and files on another machine, and how to reach it.

Every path on the machine is relative to the home folder of the user that logs in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from infra.processes.command import CommandResult
from infra.reporting import Say
from infra.storage.accepted import Limits


@dataclass(frozen=True)
class Access:
    """How to reach a machine, and the host key that it must have.

    `host_public_key` has the form `ssh-ed25519 AAAA...` and is known before the first connection.
    """

    address: str
    port: int
    user: str
    private_key: Path
    host_public_key: str

    def __str__(self) -> str:
        """The machine as user@address:port."""
        return f"{self.user}@{self.address}:{self.port}"


@dataclass(frozen=True)
class JobStatus:
    """The state of a detached process: `gone` means that it ended without an exit code, for example when killed."""

    state: Literal["running", "ended", "gone"]
    exit_code: int | None
    log: bytes  # from the requested byte on, at most LOG_BYTES


class Host(Protocol):
    """Runs commands and copies files on a machine. Every method has a time limit; errors are HostErrors."""

    access: Access

    def run(self, script: str, *, timeout_s: float = ..., stdin: bytes = ..., say: Say | None = None) -> CommandResult:
        """Run a shell script to its end; `say` receives its output line by line. Never repeated automatically."""
        ...

    def output_of(self, script: str, *, timeout_s: float = ...) -> str:
        """The output of a script, which is repeated after a lost connection; RemoteCommandError if it fails."""
        ...

    def put(self, source: Path, target: str, *, mode: int = ...) -> None:
        """Upload a file or a folder, completely or not at all; size and SHA-256 are compared. May be repeated."""
        ...

    def get(self, source: str, target: Path, limits: Limits = ...) -> None:
        """Download a file or a folder, completely or not at all; size and SHA-256 are compared. May be repeated.

        It is on disk here, under its name, when this returns.

        RefusedFileError for a link, a special file, a name with a doubtful character, or more than `limits`.
        """
        ...

    def put_secret_environment(self, values: Mapping[str, str], target: str) -> None:
        """Write these variables to a file for a shell to source: mode 600 from its first byte, never in an argv."""
        ...

    def start_detached(self, argv: Sequence[str], folder: str, *, environment_file: str | None = None) -> None:
        """Start a program that survives the connection; its pid, log and exit code are files in this folder.

        May be repeated: where the folder has a pid file already, nothing is started.
        """
        ...

    def job_status(self, folder: str, log_from: int = 0) -> JobStatus:
        """The state of the program that was started in this folder, over any connection."""
        ...

    def end_detached(self, folder: str, patience_s: float = ...) -> None:
        """End the program of this folder with its process group; does nothing if it has ended."""
        ...

    def with_patience(self, patience_s: float) -> Self:
        """The same machine over another connection, with another time limit for lost connections."""
        ...

    def close(self) -> None:
        """Disconnect; the next call connects again."""
        ...
