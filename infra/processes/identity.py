"""Which process a pid means, and whether it can be seen from here.

Pids are reused, a step of the wall clock moves the start time of every process, and each PID namespace, such as that of
a container, counts its own. The kernel counts a process's start in clock ticks from boot, which no step of the clock
moves. With the id of the boot and the namespace this names one process for ever.
"""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SELF = Path("/proc/self")
# Fields after the name of the program, which may hold anything: the first is the state, field 3 in `man proc`.
_STATE, _START = 0, 19
_ENDED = ("Z", "X")


@dataclass(frozen=True)
class ProcessStart:
    """When and where a process began, written as `boot id:PID namespace:clock ticks`.

    Records of earlier versions have no namespace.
    """

    boot: str
    namespace: str | None
    ticks: str

    def __str__(self) -> str:
        """The text in records."""
        return f"{self.boot}:{self.namespace}:{self.ticks}"

    @classmethod
    def parse(cls, text: str) -> "ProcessStart":
        """Read the text of a record."""
        boot, _, rest = text.partition(":")
        namespace, _, ticks = rest.rpartition(":")
        return cls(boot, namespace or None, ticks)

    def is_seen(self) -> bool:
        """Whether a process with this start is one of those that /proc lists here, if it runs."""
        return self.boot == _boot_id() and self.namespace in (None, pid_namespace()) and _lists_our_pids()


def start_of(pid: int) -> str | None:
    """When and where a running process began; None where it has exited, also while it is a zombie."""
    ticks = _ticks(Path(psutil.PROCFS_PATH) / str(pid) / "stat")
    return None if ticks is None else str(ProcessStart(_boot_id(), pid_namespace(), ticks))


def own_start() -> str:
    """When and where this process began, also where /proc lists the processes of another namespace."""
    return str(ProcessStart(_boot_id(), pid_namespace(), _ticks(_SELF / "stat") or "?"))


def _ticks(stat: Path) -> str | None:
    try:
        fields = stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE] in _ENDED else fields[_START]


def has_exited(pid: int, start: str | None) -> bool:
    """Whether the process of this pid and start is known to have exited: one that cannot be seen from here is not.

    Without `start`, as in records of earlier versions, a process that has the pid now counts as the same one.
    """
    if start and not is_seen(start):
        return False
    return not _is_same(pid, start)


def is_running(pid: int, start: str | None) -> bool:
    """Whether the process of this pid and start is running here, where it can be seen."""
    return (not start or is_seen(start)) and _is_same(pid, start)


def is_seen(start: str) -> bool:
    """Whether a process with this start can be seen from here: it began in this boot and in this PID namespace."""
    return ProcessStart.parse(start).is_seen()


def _is_same(pid: int, start: str | None) -> bool:
    ticks = _ticks(Path(psutil.PROCFS_PATH) / str(pid) / "stat")
    return ticks is not None and (not start or ticks == ProcessStart.parse(start).ticks)


def pid_namespace() -> str:
    """The number of this process's PID namespace, and no number where /proc does not show it."""
    try:
        return str((_SELF / "ns" / "pid").stat().st_ino)
    except OSError:
        return "?"


def _lists_our_pids() -> bool:
    """Whether /proc lists the processes of our namespace: `unshare` alone, for one, leaves it as it was."""
    try:
        return _SELF.readlink().name == str(os.getpid())
    except OSError:
        return True  # a sandbox may not show it


@cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # a sandbox may not show it; the clock ticks then count alone
        return ""
