"""Machine lock: one night at a time measures on this computer, whatever its data folder.

It is a lock on one file for all users. The kernel frees it when the process of its night exits, however that ends.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import MachineInUseError
from infra.clock import SystemClock, poll
from infra.processes.file_lock import try_lock
from infra.reporting import Say

POLL_S = 0.2
SETTLE_S = 1.0  # a night that checks, or one that has not written its name yet, holds the lock for less than this
EVERYONE = 0o666  # nights of other users wait for ours, and write their own names


@dataclass(frozen=True)
class Holder:
    """The night that measures on this computer; `night` is None until it is planned."""

    night: str | None
    pid: int
    since: str
    data: str

    def __str__(self) -> str:
        """Name the night, its process, its start and its data folder."""
        night = f"night {self.night}" if self.night else "a night that is being planned"
        return f"{night} (process {self.pid}, since {self.since}, data folder {self.data})"


class MachineLock:
    """The machine lock of this computer, on `file`, for a night of the data folder `data`."""

    def __init__(self, file: Path, data: Path) -> None:
        self._file = file
        self._data = data.absolute()
        self._since = ""
        self._held: int | None = None

    @contextlib.contextmanager
    def hold(self, say: Say, *, wait: bool) -> Iterator[None]:
        """Hold the lock during the block. MachineInUseError names its holder, unless this is to `wait`."""
        with self._open() as descriptor:
            if not poll(SystemClock(), POLL_S, lambda: try_lock(descriptor), SETTLE_S):
                if not wait:
                    raise self._in_use()
                say(f"waiting for this computer: {self._who()} measures on it")
                poll(SystemClock(), POLL_S, lambda: try_lock(descriptor))
            self._held, self._since = descriptor, datetime.now(UTC).isoformat(timespec="seconds")
            try:
                self.name(None)
                yield
            finally:
                self._held = None
                os.ftruncate(descriptor, 0)

    def name(self, night: str | None) -> None:
        """Write which night holds the lock, for those that it refuses."""
        if self._held is not None:
            text = json.dumps(asdict(Holder(night, os.getpid(), self._since, str(self._data)))).encode()
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, text, 0)

    def require_free(self) -> None:
        """Raise MachineInUseError where a night holds the lock now; it may be taken right afterwards."""
        with self._open() as descriptor:
            if not poll(SystemClock(), POLL_S, lambda: try_lock(descriptor), SETTLE_S):
                raise self._in_use()

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        try:
            descriptor = _open_for_everyone(self._file)
        except OSError as error:
            raise MachineInUseError(
                f"{self._file} cannot be opened ({error.strerror}), so another night may be measuring here: set "
                "NIGHTBENCH_MACHINE_LOCK to a file that all nights on it can write"
            ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _in_use(self) -> MachineInUseError:
        return MachineInUseError(
            f"{self._who()} measures on this computer, and two nights at once would slow each other: "
            "run again when it has ended, or add --wait"
        )

    def _who(self) -> str:
        """The holder as it has named itself."""
        try:
            return str(Holder(**json.loads(self._file.read_bytes())))
        except (OSError, ValueError, TypeError):
            return f"another process (it holds {self._file})"


def _open_for_everyone(file: Path) -> int:
    """Open a file that any user may lock; a link is not followed, since the folder may be everyone's."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(file, flags)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, flags | os.O_CREAT, EVERYONE)
        os.fchmod(descriptor, EVERYONE)  # whatever this user's umask is
        return descriptor
