"""A clock that several processes share and that moves only when one of them sleeps: eight bytes in a file."""

import fcntl
import mmap
import struct
import threading
from datetime import UTC, datetime
from pathlib import Path

EPOCH_S = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
_DOUBLE = struct.Struct("<d")


class VirtualClock:
    """Seconds since 1970 in a mapped file; `sleep` moves the clock for every process that has the file open.

    Two sleepers add up: time is what all of them together have waited, never less than what any one has.
    """

    def __init__(self, path: Path, start_s: float = EPOCH_S) -> None:
        self._path = path
        self._turn = threading.Lock()
        if not path.exists():
            path.write_bytes(_DOUBLE.pack(start_s))
        self._file = path.open("r+b")
        self._time = mmap.mmap(self._file.fileno(), _DOUBLE.size)

    def __reduce__(self) -> tuple[type["VirtualClock"], tuple[Path]]:
        return VirtualClock, (self._path,)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s(), UTC)

    def now_s(self) -> float:
        return float(_DOUBLE.unpack_from(self._time)[0])

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """Move the clock, backwards too: what a machine's clock does when somebody corrects it."""
        # A record lock belongs to a process, even to a forked one, and goes when it is killed.
        with self._turn:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                _DOUBLE.pack_into(self._time, 0, self.now_s() + seconds)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
