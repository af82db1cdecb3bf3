"""A client's whole tree of processes: started on one core, its CPU time watched, ended with all that it started."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

SAMPLE_S = 0.1
LAST_CHARACTERS = 300  # of what a failed client said


class ClientFailedError(Exception):
    """A client that ended with an error or not at all; its last words."""


@dataclass
class CpuWatch:
    """The CPU seconds of a process and all its descendants, sampled while they run."""

    pid: int
    at_ns: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    seen: dict[int, psutil.Process] = field(default_factory=dict)
    cores: set[int] = field(default_factory=set)  # that any of them was allowed to run on
    _known_s: dict[int, float] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample until told that it is over."""
        while not self._is_over.wait(SAMPLE_S):
            for pid in (self.pid, *descendants(self.pid)):
                with contextlib.suppress(OSError, psutil.Error):  # it ended just now: it keeps what it had used
                    self._sample(pid)
            self.at_ns.append(time.monotonic_ns())
            self.cpu_s.append(sum(self._known_s.values()))

    def _sample(self, pid: int) -> None:
        if pid not in self.seen:
            self.seen[pid] = psutil.Process(pid)
            self.cores |= os.sched_getaffinity(pid)
        self._known_s[pid] = time.clock_gettime(cpu_clock(pid))

    def end(self) -> None:
        """Stop sampling."""
        self._is_over.set()

    def between(self, begin_ns: float, end_ns: float) -> float | None:
        """CPU seconds between two moments, interpolated; None where too little was sampled."""
        if not self.at_ns:
            return None
        at = np.array(self.at_ns, dtype=np.float64)
        return float(np.interp(end_ns, at, self.cpu_s) - np.interp(begin_ns, at, self.cpu_s))


def cpu_clock(pid: int) -> int:
    """The number of the clock that counts a process's CPU time, threads that have ended included (Linux)."""
    return ~pid << 3 | 2


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on: from the kernel's own lists, since a search is dear."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        with contextlib.suppress(OSError):  # a process or a thread that ended just now
            for file in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
                children = [int(word) for word in file.read_text().split()]
                found += children
                waiting += children
    return found


@contextlib.contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Let what this thread starts meanwhile run on this core only, from its first instruction on."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run_tree(
    argv: Sequence[str], environment: Mapping[str, str], core: int | None, timeout_s: float, folder: Path
) -> CpuWatch:
    """Run a program to its end in a folder, its output in `client.log` there.

    Raises ClientFailedError where it ends with an error, or has not ended in time. Nothing that it started outlives it.
    """
    log = folder / "client.log"
    with log.open("wb") as output, on_core(core):
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL, process_group=0
        )
    cpu = CpuWatch(process.pid)
    watcher = threading.Thread(target=cpu.watch, daemon=True)
    watcher.start()
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired as error:
        raise ClientFailedError(f"not done after {timeout_s:.0f} s") from error
    finally:
        cpu.end()
        watcher.join()
        end_all(process, cpu)
    if code != 0:
        raise ClientFailedError(f"ended with {code}: {last_words(log)}")
    return cpu


def end_all(process: subprocess.Popen[bytes], cpu: CpuWatch) -> None:
    """Kill its group, and whatever left the group."""
    for pid in descendants(process.pid):
        with contextlib.suppress(psutil.Error):
            cpu.seen.setdefault(pid, psutil.Process(pid))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for other in cpu.seen.values():
        with contextlib.suppress(psutil.Error):
            other.kill()  # psutil refuses a number that was given to somebody else
    process.wait()


def last_words(log: Path) -> str:
    """The end of what it said, on one line."""
    return " ".join(log.read_text(errors="replace").split())[-LAST_CHARACTERS:]
