"""A clock that several processes share and that moves only when one of them sleeps: sixteen bytes in a file."""

import fcntl
import mmap
import struct
import threading
from datetime import UTC, datetime
from pathlib import Path

EPOCH_S = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
_TIMES = struct.Struct("=dd")  # seconds since 1970, and seconds that were waited


class VirtualClock:
    """Seconds since 1970 in a mapped file; `sleep` moves the clock for every process that has the file open.

    Two sleepers add up: time is what all of them together have waited, never less than what any one has.
    """

    def __init__(self, path: Path, start_s: float = EPOCH_S) -> None:
        self._path = path
        self._turn = threading.Lock()
        if not path.exists():
            path.write_bytes(_TIMES.pack(start_s, 0.0))
        self._file = path.open("r+b")
        # One store for each number: `pack_into` writes zeros first, which another process may read.
        self._times = memoryview(mmap.mmap(self._file.fileno(), _TIMES.size)).cast("d")

    def __reduce__(self) -> tuple[type["VirtualClock"], tuple[Path]]:
        return VirtualClock, (self._path,)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s(), UTC)

    def now_s(self) -> float:
        return self._times[0]

    def monotonic(self) -> float:
        return self._times[1]

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._move(seconds, seconds)

    def jump(self, seconds: float) -> None:
        """Step the wall clock, backwards too: what a machine's clock does when somebody corrects it."""
        self._move(seconds, 0.0)

    def _move(self, wall_s: float, waited_s: float) -> None:
        # A record lock belongs to a process, even to a forked one, and goes when it is killed.
        with self._turn:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                self._times[0] += wall_s
                self._times[1] += waited_s
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
