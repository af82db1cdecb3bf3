"""Run a load client as a process tree on one core: measure its CPU time, and kill every process at the end."""

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
LAST_CHARACTERS = 300  # of a failed client's output


class ClientFailedError(Exception):
    """A client failed or did not finish; the message ends with its last output."""


@dataclass
class CpuWatch:
    """CPU seconds of a process and all its descendants, sampled while they run."""

    pid: int
    at_ns: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    seen: dict[int, psutil.Process] = field(default_factory=dict)
    cores: set[int] = field(default_factory=set)  # that any of the processes was allowed to use
    _known_s: dict[int, float] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample until `end` is called."""
        while not self._is_over.wait(SAMPLE_S):
            for pid in (self.pid, *descendants(self.pid)):
                with contextlib.suppress(OSError, psutil.Error):  # it exited just now; its last sample stays
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
        """CPU seconds between two times, interpolated; None without samples."""
        if not self.at_ns:
            return None
        at = np.array(self.at_ns, dtype=np.float64)
        return float(np.interp(end_ns, at, self.cpu_s) - np.interp(begin_ns, at, self.cpu_s))


def cpu_clock(pid: int) -> int:
    """The id of the clock for a process's CPU time, exited threads included (Linux)."""
    return ~pid << 3 | 2


def descendants(pid: int) -> list[int]:
    """All descendants of a process, from the kernel's lists of children; scanning /proc costs too much."""
    found: list[int] = []
    pending = [pid]
    while pending:
        with contextlib.suppress(OSError):  # a process or thread that exited just now
            for file in Path(f"/proc/{pending.pop()}/task").glob("*/children"):
                children = [int(word) for word in file.read_text().split()]
                found += children
                pending += children
    return found


@contextlib.contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Pin processes that this thread starts in the block to one core; None pins nothing."""
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
    """Run a program in a folder, with its output in `client.log` there.

    Raises ClientFailedError if it exits with an error or takes longer than `timeout_s`. No descendant outlives it.
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
        raise ClientFailedError(f"not finished after {timeout_s:.0f} s") from error
    finally:
        cpu.end()
        watcher.join()
        kill_all(process, cpu)
    if code != 0:
        raise ClientFailedError(f"exit code {code}: {last_output(log)}")
    return cpu


def kill_all(process: subprocess.Popen[bytes], cpu: CpuWatch) -> None:
    """Kill the process group, and every descendant that left the group."""
    for pid in descendants(process.pid):
        with contextlib.suppress(psutil.Error):
            cpu.seen.setdefault(pid, psutil.Process(pid))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for other in cpu.seen.values():
        with contextlib.suppress(psutil.Error):
            other.kill()  # psutil does not kill a process that reused the id
    process.wait()


def last_output(log: Path) -> str:
    """The end of the output, on one line."""
    return " ".join(log.read_text(errors="replace").split())[-LAST_CHARACTERS:]
