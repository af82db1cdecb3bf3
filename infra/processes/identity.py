"""Which process a pid means: pids are reused, and a step of the wall clock moves the start time of every process.

The kernel counts a process's start in clock ticks from boot, which no step of the clock moves. With the id of the boot
this names one process for ever.
"""

from functools import cache
from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Fields after the name of the program, which may hold anything: the first is the state, field 3 in `man proc`.
_STATE, _START = 0, 19
_ENDED = ("Z", "X")


def start_of(pid: int) -> str | None:
    """When a running process began, as `boot id:clock ticks`; None where it has exited, also while it is a zombie."""
    try:
        text = (Path(psutil.PROCFS_PATH) / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else f"{_boot_id()}:{fields[_START]}"


def has_exited(pid: int, start: str | None) -> bool:
    """Whether the process of this pid and start has exited.

    Without `start`, as in records of earlier versions, a process that has the pid now counts as the same one.
    """
    now = start_of(pid)
    return now is None or (start is not None and start != now)


def is_of_this_boot(start: str) -> bool:
    """Whether a process with this start began since this computer was booted."""
    return start.partition(":")[0] == _boot_id()


@cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # a sandbox may not show it; the clock ticks then count alone
        return ""
