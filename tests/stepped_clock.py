"""Steps of this computer's wall clock: as /proc reports them, and in the middle of a wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

from tests.emulators.virtual_clock import VirtualClock

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


class SteppedMidway:
    """A clock whose wall time is stepped during one of its waits; what passes is not affected."""

    def __init__(self, inner: VirtualClock, by_s: int, *, at_sleep: int) -> None:
        self._inner, self._by_s, self._sleeps_left = inner, by_s, at_sleep

    def now(self) -> datetime:
        return self._inner.now() + timedelta(seconds=0 if self._sleeps_left > 0 else self._by_s)

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
        self._sleeps_left -= 1
