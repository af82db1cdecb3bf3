"""Wall time and peak memory of one process."""

import os
import subprocess
import time
from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class ProcessUse:
    """Wall time and peak memory of one process."""

    wall_s: float
    peak_bytes: int


def run(*argv: str) -> ProcessUse:
    """Run a process to its end; exit code 1 is allowed, since an audit may fail and a comparison find a loss."""
    started = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise subprocess.CalledProcessError(process.returncode, argv)
    return ProcessUse(time.monotonic() - started, used.ru_maxrss * 1024)
