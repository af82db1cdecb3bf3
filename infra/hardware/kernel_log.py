"""What the kernel's log says of GPU errors during a load: NVIDIA's Xid lines, and amdgpu's faults, resets and RAS."""

import os
import re
from pathlib import Path

from bench.printable import printable

KMSG = Path("/dev/kmsg")  # each read gives one record; readable by root
RECORD_BYTES = 1 << 13  # the kernel refuses to read a record into less than it is long
LINES_MAX = 20
_ERROR = re.compile(
    r"NVRM: Xid |amdgpu.*(?:GPU reset|retry page fault|ring \S+ timeout|uncorrectable|RAS.*(?:poison|error)|GPU hang)",
    re.IGNORECASE,
)


def is_gpu_error(line: str) -> bool:
    """Whether a line of the kernel's log is an error of a GPU."""
    return _ERROR.search(line) is not None


class KernelLog:
    """Reads what the kernel writes from `begin` to `end`; `lines` are the first GPU errors, None where unknown."""

    def __init__(self, path: Path = KMSG) -> None:
        self.path = path
        self._file: int | None = None
        self.lines: tuple[str, ...] | None = None
        self.why_unknown: str | None = None

    def begin(self) -> None:
        """Skip what the log has so far."""
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self.why_unknown = f"the kernel's log {self.path} cannot be read: {error.strerror}"

    def end(self) -> None:
        """Read what the log has got since, and close it."""
        if self._file is None:
            return
        if self.why_unknown is None:
            found = [line for line in self._new_lines(self._file) if is_gpu_error(line)]
            self.lines = tuple(printable(line.partition(";")[2] or line)[:200] for line in found[:LINES_MAX])
        os.close(self._file)
        self._file = None

    def _new_lines(self, file: int) -> list[str]:
        found: list[str] = []
        while True:
            try:
                record = os.read(file, RECORD_BYTES)
            except BrokenPipeError:  # older records were overwritten before they were read
                continue
            except BlockingIOError:
                return found
            except OSError as error:
                self.why_unknown = f"the kernel's log {self.path} cannot be read: {error.strerror}"
                return found
            if not record:
                return found
            found += [line for line in record.decode(errors="replace").splitlines() if is_gpu_error(line)]
