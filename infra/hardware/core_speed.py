"""How fast the cores of this host are while a load runs: the CPU time of a fixed piece of work, a few times a second.

On a virtual machine, or a hot one, a core can do less in the same CPU time, for minutes, and neither steal nor pressure
nor other processes show it. The work shows the core and its first caches; more than these may slow a load. A thread of
its own does the work: the load client is another process, so no send waits for it, the work releases the interpreter's
lock, and the thread gives way to whoever wants its core.
"""

import os
import threading
import time
import zlib
from dataclasses import dataclass, field
from random import Random
from statistics import median
from types import TracebackType
from typing import Self

PERIOD_S = 0.25
TRIES = 3  # of which the fastest counts: the first one finds the caches cold
BYTES = 16_384  # 0.1 to 0.3 ms, in the first caches of a core: with TRIES and PERIOD_S below 0.4 % of a core
FEWEST = 4  # samples that have a median
NICE = 10
TOO_FEW = f"fewer than {FEWEST} samples, as in a load of less than a second or where no core is free"


def _words() -> bytes:
    draw = Random(0)  # noqa: S311 - always the same text
    words = [bytes(draw.choices(range(97, 123), k=draw.randint(2, 9))) for _ in range(300)]
    return b" ".join(draw.choices(words, k=BYTES))[:BYTES]


TEXT = _words()


def work_s() -> float:
    """CPU seconds of this thread for the work: to compress a fixed text; the time in which it waits does not count."""
    took = []
    for _ in range(TRIES):
        began_ns = time.thread_time_ns()
        zlib.compress(TEXT)
        took.append(time.thread_time_ns() - began_ns)
    return min(took) / 1e9


@dataclass
class CoreSpeed:
    """Samples the work while its `with` block runs, on whichever cores the kernel gives it."""

    samples_s: list[float] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start."""
        self._thread = threading.Thread(target=self._run, name="core-speed", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop; no sample is taken after it."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def why_unknown(self) -> str | None:
        """Why there is no speed; None where there is one."""
        return TOO_FEW if len(self.samples_s) < FEWEST else None

    @property
    def median_s(self) -> float | None:
        """The median CPU time of the work; None of too few samples."""
        return None if self.why_unknown else median(self.samples_s)

    @property
    def slowest_s(self) -> float | None:
        """The longest CPU time of the work; None of too few samples."""
        return None if self.why_unknown else max(self.samples_s)

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICE)
        while not self._is_over.wait(PERIOD_S):
            self.samples_s.append(work_s())
