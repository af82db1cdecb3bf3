"""What the kernel says of a server's end: processes that its OOM killer killed, and GPUs that hung."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from bench.engines.failures import Failure, find_failure
from bench.engines.kernel_failures import FAILURES
from infra.processes.command import run_tool

VMSTAT = Path("/proc/vmstat")
DMESG_TIMEOUT_S = 5.0
_STAMP = re.compile(r"^\[ *(\d+\.\d+)\] ?(.*)$")
_OOM_KILLER = FAILURES[0]


@dataclass(frozen=True)
class KernelMark:
    """A moment of the kernel: seconds of its monotonic clock, and how many processes its OOM killer had killed."""

    at_s: float
    oom_kills: int | None  # None: the kernel does not count them


def mark_kernel(vmstat: Path = VMSTAT) -> KernelMark:
    """The present moment."""
    return KernelMark(time.monotonic(), _oom_kills(vmstat))


def failure_since(mark: KernelMark, vmstat: Path = VMSTAT) -> Failure | None:
    """The first failure that the kernel has logged or counted since a moment, or None."""
    listed = run_tool(["dmesg"], timeout_s=DMESG_TIMEOUT_S)  # only root may read it on many hosts
    logged = find_failure(lines_since(mark, listed.out), FAILURES)
    return logged or _counted(mark, _oom_kills(vmstat))


def lines_since(mark: KernelMark, dmesg: str) -> str:
    """The lines of the kernel's log that are not older than a moment, without their time."""
    stamped = filter(None, map(_STAMP.match, dmesg.splitlines()))
    return "\n".join(line[2] for line in stamped if float(line[1]) >= mark.at_s)


def _counted(mark: KernelMark, now: int | None) -> Failure | None:
    if mark.oom_kills is None or now is None or now <= mark.oom_kills:
        return None
    killed = now - mark.oom_kills
    return Failure(_OOM_KILLER, f"{VMSTAT} counts {killed} processes killed for memory since the server's start")


def _oom_kills(vmstat: Path) -> int | None:
    try:
        found = re.search(r"^oom_kill (\d+)$", vmstat.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
