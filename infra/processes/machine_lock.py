"""Machine lock: one night at a time measures on this computer, whatever its data folder.

It is a lock on one file for all users. The kernel frees it when the process of its night exits, however that ends.
For a night that uses this computer over SSH, a process here holds it: infra/remote/host_lock.py.
"""

import contextlib
import errno
import fcntl
import json
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import MachineInUseError
from bench.printable import printable_strings
from infra.clock import SystemClock, poll
from infra.processes.file_lock import try_lock
from infra.reporting import Say

POLL_S = 0.2
SETTLE_S = 1.0  # a night that checks, or one that has not written its name yet, holds the lock for less than this
EVERYONE = 0o666  # nights of other users wait for ours, and write their own names


@dataclass(frozen=True)
class Holder:
    """The night that measures on this computer; `night` is None until it is planned.

    `over_ssh` is who uses this computer over SSH: a lease, a user, and a process on another computer.
    """

    night: str | None
    pid: int
    since: str
    data: str
    over_ssh: str | None = None

    def __str__(self) -> str:
        """Name the night, its start, and its process and data folder here or who uses this computer over SSH."""
        night = f"night {self.night}" if self.night else "a night that is being planned"
        if self.over_ssh is not None:
            return f"{night} (over SSH, {self.over_ssh}, since {self.since})"
        return f"{night} (process {self.pid}, since {self.since}, data folder {self.data})"


def read_holder(text: bytes) -> str | None:
    """Who holds the lock, as written in its file, which every user may write; None if the text is not valid."""
    try:
        return str(Holder(**printable_strings(json.loads(text))))
    except (ValueError, TypeError, RecursionError):
        return None


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
                self._write(b"")
                self._held = None

    def name(self, night: str | None) -> None:
        """Write which night holds the lock, for those that it refuses."""
        if self._held is not None:
            self._write(json.dumps(asdict(Holder(night, os.getpid(), self._since, str(self._data)))).encode())

    def _write(self, text: bytes) -> None:
        """Write who holds the lock; a file of another user that may only be read is locked without a name."""
        if self._held is not None and fcntl.fcntl(self._held, fcntl.F_GETFL) & os.O_RDWR:
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, text, 0)

    def require_free(self) -> None:
        """Raise MachineInUseError where a night holds the lock now; it may be taken right afterwards."""
        with self._open() as descriptor:
            if not poll(SystemClock(), POLL_S, lambda: try_lock(descriptor), SETTLE_S):
                raise self._in_use()

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        opened, failures = list[int](), list[OSError]()
        # Another user may be creating it, who gives it its rights in the next moment.
        if not poll(SystemClock(), POLL_S, lambda: _try_open(self._file, opened, failures), SETTLE_S):
            raise MachineInUseError(
                f"{self._file} cannot be opened ({failures[-1].strerror}{_owner(self._file)}), so another night may be "
                "measuring here: let all users read and write it (chmod 666), or set NIGHTBENCH_MACHINE_LOCK to the "
                "same other file for all nights on this computer"
            ) from failures[-1]
        try:
            yield opened[0]
        finally:
            os.close(opened[0])

    def _in_use(self) -> MachineInUseError:
        return MachineInUseError(
            f"{self._who()} measures on this computer, and two nights at once would slow each other: "
            "run again when it has ended, or add --wait"
        )

    def _who(self) -> str:
        """The holder as it has named itself."""
        text = b""
        with contextlib.suppress(OSError):
            text = self._file.read_bytes()
        return read_holder(text) or f"another process (it holds {self._file})"


def _try_open(file: Path, opened: list[int], failures: list[OSError]) -> bool:
    """Add the file, open, to `opened`; False after noting why it cannot be opened."""
    try:
        opened.append(_open_for_everyone(file))
    except OSError as error:
        failures.append(error)
    return bool(opened)


def _open_for_everyone(file: Path) -> int:
    """Open a file that any user may lock; a link is not followed, since the folder may be everyone's."""
    descriptor = _open_or_create(file)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # a hard link may lead anywhere
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file with a single name")
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != EVERYONE:
        os.fchmod(descriptor, EVERYONE)  # whatever this user's umask was
    return descriptor


def _open_or_create(file: Path) -> int:
    """Open the file for writing, or for reading where it is another user's; that is enough to lock it."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(file, flags | os.O_RDWR)
    except PermissionError:
        return os.open(file, flags | os.O_RDONLY)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Only a new file: in a folder of everyone's the kernel may forbid to open another user's file for creation.
        return os.open(file, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, EVERYONE)


def _owner(file: Path) -> str:
    """Whose file it is, in words; nothing where that is unknown."""
    try:
        user = file.lstat().st_uid
        return f"; it belongs to {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"; it belongs to user {user}"
    except OSError:
        return ""
