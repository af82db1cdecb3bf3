"""The file of a trace: hashed and read line by line, so that its size does not matter."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from bench.errors import SuiteError, UsageError
from bench.suite.traces.formats import READERS
from bench.suite.traces.logs import LOGS, LogKind, trace_lines
from bench.suite.traces.window import Replayed, Window, replayed
from bench.suite.workload import Workload
from nights import durable

LINE_BYTES = 64 << 20  # of one line: a session of an agent may have tens of MiB


def find_trace(file: Path, sha256: str | None, where: str) -> tuple[Path, str]:
    """The absolute path of a trace, and its SHA-256; SuiteError if it cannot be read or has another hash."""
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise SuiteError(f"{where}: the file {file} cannot be read: {error}") from error
    if sha256 not in (None, found):
        raise SuiteError(f"{where}: {file}: SHA-256 mismatch: expected {sha256}, found {found}")
    return file.resolve(), found


def read_trace(work: Workload, file: Path) -> tuple[Replayed, ...]:
    """The requests of a scenario's window; SuiteError with the line that is not valid."""
    window = Window(work.total_count, work.isl, work.osl, work.trace_from_s, work.trace_speed)
    return replayed(READERS[work.trace_format](_lines(file), str(file)), str(file), window)


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file; no more than one of them is in memory."""
    try:
        with file.open("rb") as opened:
            number = 0
            while line := opened.readline(LINE_BYTES):
                number += 1
                if len(line) == LINE_BYTES:
                    raise SuiteError(f"{file}:{number}: the line is longer than {LINE_BYTES >> 20} MiB")
                yield _decoded(line, f"{file}:{number}")
    except OSError as error:
        raise SuiteError(f"the file {file} cannot be read: {error}") from error


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{where}: not UTF-8") from error


def convert_log(log: Path, kind: LogKind, out: Path) -> int:
    """Write the trace of a log of requests and return how many it has; UsageError if the new file exists."""
    if out.exists():
        raise UsageError(f"{out} exists already: name a new file")
    made = list(trace_lines(LOGS[kind](_lines(log), str(log))))
    if not made:
        raise UsageError(f"{log} has no request of the kind {kind}: nothing was written")
    try:
        durable.write_text(out, "".join(made))
    except (FileExistsError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
    return len(made)
