"""The memory traffic of other processes, by the kernel's resctrl: that of all processes, less that of a group of ours.

Only resctrl separates processes, if it is mounted and writable, and if the processor counts traffic. The group
takes a hardware counter, so it is removed at the end; one that a killed night left is removed by the next.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from infra.hardware.own_processes import PROC

RESCTRL = Path("/sys/fs/resctrl")
GROUP = "nightbench-"  # and the pid of the process that made it


class MemoryTraffic:
    """Counts from its creation to `end`; `why_unknown` has the reason where nothing can be counted."""

    def __init__(self, pids: Iterable[int], resctrl: Path | None = None) -> None:
        self._resctrl = RESCTRL if resctrl is None else resctrl
        self._group = self._resctrl / "mon_groups" / f"{GROUP}{os.getpid()}"
        self._began: tuple[int, int] | None = None
        self.why_unknown: str | None = None
        if not (self._resctrl / "mon_data").is_dir():
            self.why_unknown = f"{self._resctrl} is not mounted, and no other counter tells processes apart"
            return
        try:
            self._make_group(pids)
            self._began = self._read()
        except (OSError, ValueError) as error:
            self._remove()
            self.why_unknown = f"{self._resctrl} does not count our processes apart: {error}"

    def _make_group(self, pids: Iterable[int]) -> None:
        for left in self._group.parent.glob(f"{GROUP}*"):
            if not (PROC / left.name.removeprefix(GROUP)).exists():
                left.rmdir()
        self._group.mkdir(exist_ok=True)
        for pid in pids:
            # Later threads and children are in the group of their parent.
            for thread in (PROC / str(pid) / "task").glob("*"):
                with contextlib.suppress(ProcessLookupError):
                    (self._group / "tasks").write_text(thread.name)

    def end(self) -> float | None:
        """The bytes that others have moved to and from memory since the begin; None if unknown. Removes the group."""
        if self._began is None:
            return None
        try:
            everybody, ours = self._read()
        except (OSError, ValueError) as error:
            self.why_unknown = f"{self._resctrl} stopped counting: {error}"
            return None
        finally:
            self._remove()
        return max(0.0, float(everybody - self._began[0] - (ours - self._began[1])))

    def _read(self) -> tuple[int, int]:
        """The bytes of all processes and of ours; those of a group include its monitoring groups."""
        controlled = [self._resctrl, *(folder.parent for folder in self._resctrl.glob("*/mon_data"))]
        return sum(map(_bytes_of, controlled)), _bytes_of(self._group)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._group.rmdir()


def _bytes_of(group: Path) -> int:
    """The traffic of a group over all memory controllers; ValueError where the processor does not count it now."""
    counters = sorted(group.glob("mon_data/*/mbm_total_bytes"))
    if not counters:
        msg = f"{group} has no mbm_total_bytes"
        raise ValueError(msg)
    return sum(int(counter.read_text()) for counter in counters)
