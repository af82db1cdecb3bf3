"""A step of this computer's clock as the kernel reports it: /proc states that the computer booted at another time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

STEPS_S = (-7200, -2, 2, 7200)


@contextmanager
def stepped_clock(folder: Path, by_s: int) -> Iterator[None]:
    """During the block /proc is as after a step of the clock by so many seconds; processes must have started before."""
    proc = folder / "proc"
    proc.mkdir()
    for entry in Path("/proc").iterdir():
        (proc / entry.name).symlink_to(entry)
    (proc / "stat").unlink()
    lines = Path("/proc/stat").read_text().splitlines()
    (proc / "stat").write_text("\n".join(_later(line, by_s) for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "PROCFS_PATH", str(proc))
        yield


def _later(line: str, by_s: int) -> str:
    name, _, value = line.partition(" ")
    return f"{name} {int(value) + by_s}" if name == "btime" else line
