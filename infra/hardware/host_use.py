"""What other processes take of this host during a load: CPU time and GPUs; what cannot be measured has a reason.

CPU time is that of all processes on the cores that this process may use, less that of our own process trees. The
kernel's interrupt work is not counted, because most of it is our own network traffic.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.errors import MachineUnfitError
from bench.machine.gpu_tools import GpuProcess
from infra.hardware import gpus
from infra.hardware.own_processes import (
    PROC,
    TICKS_PER_S,
    OwnProcesses,
    ProcessTimes,
    listed_pids,
    read_all,
)

GPU_PERIOD_S = 15.0  # nvidia-smi and amd-smi take up to a second of CPU time
BUSIEST_MAX = 3
BUSIEST_MIN_SHARE = 0.005  # of the cores' time
PRESSURES = ("cpu", "memory", "io")
NO_PRESSURE = "this kernel has no pressure stall information (PSI): /proc/pressure cannot be read"
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7  # of a line of /proc/stat


@dataclass(frozen=True)
class CpuTimes:
    """Seconds of CPU since boot: of processes, and of everything including idle; and seconds of waiting (PSI)."""

    processes_s: float
    total_s: float
    waiting_s: Mapping[str, float]  # by the names of PRESSURES; nothing where the kernel has no PSI


def read_cpu() -> CpuTimes:
    """The CPU times of the cores that this process may use."""
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    lines = [line.split() for line in (PROC / "stat").read_text().splitlines() if line.startswith("cpu")]
    cores = [[int(ticks) / TICKS_PER_S for ticks in line[1:]] for line in lines if line[0] in names]
    return CpuTimes(
        processes_s=sum(core[_USER] + core[_NICE] + core[_SYSTEM] for core in cores),
        total_s=sum(sum(core[: _STEAL + 1]) for core in cores),  # guests are in `user`
        waiting_s={name: waited for name in PRESSURES if (waited := _waiting_s(name)) is not None},
    )


def _waiting_s(resource: str) -> float | None:
    """Seconds in which at least one process of the host waited for this resource; None without PSI."""
    try:
        first = (PROC / "pressure" / resource).read_text().splitlines()[0]
    except OSError:
        return None
    return int(first.rpartition("total=")[2]) / 1e6


@dataclass(frozen=True)
class Look:
    """The host and our own processes at one moment."""

    at_s: float
    cpu: CpuTimes
    own_s: float


@dataclass(frozen=True)
class Use:
    """The use of the host between two readings; None if the kernel does not report it."""

    other_cpu_share: float | None
    cpu_pressure_share: float | None
    memory_pressure_share: float | None
    io_pressure_share: float | None

    @classmethod
    def between(cls, first: Look, last: Look) -> Self:
        """What was used from the first look to the last."""
        total_s = last.cpu.total_s - first.cpu.total_s
        other_s = last.cpu.processes_s - first.cpu.processes_s - (last.own_s - first.own_s)
        took_s = last.at_s - first.at_s
        waited = {name: waited - first.cpu.waiting_s[name] for name, waited in last.cpu.waiting_s.items()}
        shares = {name: min(1.0, waited_s / took_s) for name, waited_s in waited.items()} if took_s else {}
        # The kernel counts the host by ticks and processes by the clock, so a quiet host may come out below zero.
        other = min(1.0, max(0.0, other_s / total_s)) if total_s else None
        return cls(other, *(shares.get(name) for name in PRESSURES))


def read_others(own: OwnProcesses) -> list[ProcessTimes]:
    """Every process that was never ours, as it is now."""
    return read_all(listed_pids() - own.ever)


def busiest(before: Sequence[ProcessTimes], now: Sequence[ProcessTimes], total_s: float) -> tuple[str, ...]:
    """The processes that took most between two moments, by name, with their share of `total_s` of all cores.

    What a child took that has exited is its parent's, if the parent waited for it; else it is unseen.
    """
    known = {(one.pid, one.began): one for one in before}
    spent_s: dict[str, float] = defaultdict(float)
    pids: dict[str, set[int]] = defaultdict(set)
    for one in now:
        seconds, who = _spent(one, known.get((one.pid, one.began)))
        spent_s[who] += seconds
        if seconds > 0:
            pids[who].add(one.pid)
    shares = sorted(((seconds / total_s, who) for who, seconds in spent_s.items()), reverse=True) if total_s else []
    return tuple(
        f"{who} ({_who_they_are(pids[who])}) {share:.0%}"
        for share, who in shares[:BUSIEST_MAX]
        if share >= BUSIEST_MIN_SHARE
    )


def _spent(one: ProcessTimes, before: ProcessTimes | None) -> tuple[float, str]:
    itself_s = one.cpu_s - (before.cpu_s if before else 0.0)
    children_s = one.waited_s - (before.waited_s if before else 0.0)
    name = plain(one.name)
    return itself_s + children_s, f"children of {name}" if children_s > itself_s else name


def _who_they_are(pids: set[int]) -> str:
    return f"{len(pids)} processes" if len(pids) > 1 else f"pid {min(pids)}"


def plain(name: str) -> str:
    """A process's name without what a terminal would obey: a process chooses its own."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


@dataclass
class GpuWatch:
    """Reads which processes use the GPUs at the begin, each `GPU_PERIOD_S` and at the end of its `with` block.

    `gpus`: what tools call the GPUs of the run, whose other users count; None: every GPU of the host.
    """

    gpus: frozenset[str] | None = None
    period_s: float = GPU_PERIOD_S
    why_unknown: str | None = None
    _readings: list[tuple[GpuProcess, ...]] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start, if this machine has a GPU tool."""
        if gpus.vendor() is None:
            self.why_unknown = "neither amd-smi nor nvidia-smi is on this machine"
        else:
            self._thread = threading.Thread(target=self._run, name="gpu-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop after a last reading."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
            self._read()

    def others(self, own: OwnProcesses) -> tuple[str, ...] | None:
        """The processes that used the GPUs and are not ours; None, with `why_unknown`, where that is unknown."""
        found = {one.pid: one for reading in self._readings for one in reading}
        if self.why_unknown is None and not found.keys() & own.ever:
            # In a container the tool may list no process, or give pids of another namespace.
            self.why_unknown = "the GPU tool lists no process of this run, so it may not list others either"
        if self.why_unknown is not None:
            return None
        others = {one.pid: Path(one.name).name for reading in self._readings for one in self._others(reading, own)}
        return tuple(f"{plain(name)} (pid {pid})" for pid, name in sorted(others.items()))

    def other_bytes(self, own: OwnProcesses) -> int | None:
        """The most memory that other processes held at once; None where they or the memory of one are unknown."""
        if self.others(own) is None:
            return None
        held = [[one.used_bytes for one in self._others(reading, own)] for reading in self._readings]
        known = [sum(used for used in reading if used is not None) for reading in held if None not in reading]
        return max(known, default=None)

    def _others(self, reading: tuple[GpuProcess, ...], own: OwnProcesses) -> list[GpuProcess]:
        """Those that are not ours, on the run's GPUs or on one that the tool does not name."""
        others = [one for one in reading if one.pid not in own.ever]
        return [one for one in others if self.gpus is None or one.gpu is None or one.gpu in self.gpus]

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._read()
            self._is_over.wait(self.period_s)

    def _read(self) -> None:
        try:
            self._readings.append(gpus.read_processes())
        except MachineUnfitError as error:
            self.why_unknown = str(error)
