"""The Host port: what is asked of a machine that is not the computer we run on, and how such a machine is reached.

Every path on the machine is relative to the home folder of the user that logs in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from infra.processes.command import CommandResult
from infra.reporting import Say


@dataclass(frozen=True)
class Access:
    """How to reach a machine, and who it must prove to be.

    `host_public_key` is its host key as `ssh-ed25519 AAAA...`, known before the first contact.
    """

    address: str
    port: int
    user: str
    private_key: Path
    host_public_key: str

    def __str__(self) -> str:
        """The machine as a person would name it."""
        return f"{self.user}@{self.address}:{self.port}"


@dataclass(frozen=True)
class JobStatus:
    """What a detached process is doing: `gone` means that it ended without leaving an exit code, killed say."""

    state: Literal["running", "ended", "gone"]
    exit_code: int | None
    log: bytes  # what was logged from the asked byte on, at most LOG_BYTES


class Host(Protocol):
    """Run commands and move files on a machine. Everything here is bounded in time; errors are HostErrors."""

    access: Access

    def run(self, script: str, *, timeout_s: float = ..., stdin: bytes = ..., say: Say | None = None) -> CommandResult:
        """Run a shell script to its end; `say` gets its output line by line. Never repeated by itself."""
        ...

    def output_of(self, script: str, *, timeout_s: float = ...) -> str:
        """The output of a script that may be repeated, and is over lost connections; RemoteCommandError if it fails."""
        ...

    def put(self, source: Path, target: str, *, mode: int = ...) -> None:
        """Put a file or a folder there, size and SHA-256 compared: whole or not at all. May be repeated."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Get a file or a folder from there, size and SHA-256 compared: whole or not at all. May be repeated."""
        ...

    def put_secret_environment(self, values: Mapping[str, str], target: str) -> None:
        """Write a file for a shell to read these variables from, mode 600 from its first byte, never in an argv."""
        ...

    def start_detached(self, argv: Sequence[str], folder: str, *, environment_file: str | None = None) -> None:
        """Start a program that outlives the connection; its pid, log and exit code are files in this folder.

        May be repeated: where the folder holds a pid already, nothing is started.
        """
        ...

    def job_status(self, folder: str, log_from: int = 0) -> JobStatus:
        """Say what the program that was started in this folder is doing, by whatever connection it was started."""
        ...

    def end_detached(self, folder: str, patience_s: float = ...) -> None:
        """End the program of this folder with its whole session; one that has ended is no error."""
        ...

    def with_patience(self, patience_s: float) -> Self:
        """The same machine by a connection of its own, given up on sooner or later."""
        ...

    def close(self) -> None:
        """Hang up; the next call connects again."""
        ...
