"""A few words of shared memory between the process that watches and the processes that work.

Each word has one writer, and is eight bytes, which a 64-bit host writes at once.
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
        """Let everybody begin at this moment."""
        self.words[_ORIGIN] = origin_ns

    @property
    def stopped_by(self) -> int:
        """Signal number that asks to stop; 0 while none does."""
        return self.words[_STOP]

    def stop(self, number: int) -> None:
        """Ask everybody to stop; the first reason stays."""
        self.words[_STOP] = self.words[_STOP] or number

    @property
    def is_ready(self) -> bool:
        """Whether every worker has its connections."""
        return all(self.words[_WORDS : _WORDS + self.workers])

    def ready(self, worker: int) -> None:
        """Say that this worker has its connections."""
        self.words[_WORDS + worker] = 1

    @property
    def ended(self) -> int:
        """Requests that have ended, of all workers."""
        return sum(self.words[_WORDS + self.workers :])

    def tell(self, worker: int, ended: int) -> None:
        """Say how many requests this worker has ended."""
        self.words[_WORDS + self.workers + worker] = ended

    @property
    def is_orphan(self) -> bool:
        """Whether the watcher has died; asked by a worker."""
        return os.getppid() != self.watcher
