"""Shared memory between the watching process and its workers.

Each word is eight bytes and has one writer; a 64-bit host writes it atomically.
"""

import mmap
import os
from dataclasses import dataclass

_ORIGIN, _STOP, _WORDS = 0, 1, 2  # then for each worker whether it is ready, then how many requests it has ended


@dataclass(slots=True)
class Board:
    """Origin of times and the signal to stop, written by the watcher; readiness and progress, by each worker."""

    words: memoryview
    workers: int
    watcher: int  # its process id

    @classmethod
    def open(cls, workers: int) -> "Board":
        """Make one that forked processes will share."""
        shared = mmap.mmap(-1, 8 * (_WORDS + 2 * workers))
        return cls(memoryview(shared).cast("q"), workers, os.getpid())

    @property
    def origin_ns(self) -> int:
        """CLOCK_MONOTONIC from which the run counts; 0 until all are ready."""
        return self.words[_ORIGIN]

    def start(self, origin_ns: int) -> None:
        """Set the moment at which every worker begins."""
        self.words[_ORIGIN] = origin_ns

    @property
    def stopped_by(self) -> int:
        """Number of the signal that stops the run; 0 until one arrives."""
        return self.words[_STOP]

    def stop(self, number: int) -> None:
        """Stop every worker; the first signal number is kept."""
        self.words[_STOP] = self.words[_STOP] or number

    @property
    def is_ready(self) -> bool:
        """Whether every worker has its connections."""
        return all(self.words[_WORDS : _WORDS + self.workers])

    def ready(self, worker: int) -> None:
        """Mark this worker as connected."""
        self.words[_WORDS + worker] = 1

    @property
    def ended(self) -> int:
        """Requests that have ended, of all workers."""
        return sum(self.words[_WORDS + self.workers :])

    def report_ended(self, worker: int, ended: int) -> None:
        """Set how many requests of this worker have ended."""
        self.words[_WORDS + self.workers + worker] = ended

    @property
    def is_orphan(self) -> bool:
        """Return whether the watching process has ended; called by a worker."""
        return os.getppid() != self.watcher
