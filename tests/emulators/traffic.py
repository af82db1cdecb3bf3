"""What machines download from the emulators, in the size of the real files, and a clock on which that takes time."""

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from infra.clock import SystemClock


class DownloadClock(SystemClock):
    """The wall's clock, moved on by each download: an emulated file arrives at once, which a real one does not."""

    def __init__(self) -> None:
        self._moved_s = 0.0
        self._turn = threading.Lock()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._moved_s)

    def move(self, seconds: float) -> None:
        with self._turn:
            self._moved_s += seconds


@dataclass
class Traffic:
    """The downloads of one kind: a byte that an emulator sends stands for `scale` bytes of the real file.

    `names` has each file or layer once for each time that it was sent. Downloads share one line of `bytes_per_s`.
    """

    clock: DownloadClock
    bytes_per_s: float
    scale: float
    names: list[str] = field(default_factory=list)
    bytes: float = 0.0

    def served(self, name: str, size: int) -> None:
        """Hear from an emulator that it sent so many bytes."""
        self.names.append(name)
        self.bytes += size * self.scale
        self.clock.move(size * self.scale / self.bytes_per_s)

    def take(self) -> "Traffic":
        """What came since the last call."""
        taken = Traffic(self.clock, self.bytes_per_s, self.scale, self.names, self.bytes)
        self.names, self.bytes = [], 0.0
        return taken
