"""Keep what a profiler wrote: regular files of bounded size and number; the engine may have written anything."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

FILES_MAX, BYTES_MAX, ENTRIES_MAX = 64, 256 << 20, 10_000
TRACE = ".json.gz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}(?:[.]json[.]gz|[.]txt)")  # a table of operators is a text


@dataclass(frozen=True)
class TraceLimits:
    """The most that is kept of one trace, and looked at in its folder."""

    files: int = FILES_MAX
    bytes: int = BYTES_MAX
    entries: int = ENTRIES_MAX


def keep_traces(
    source: Path,
    target: Path,
    limits: TraceLimits = TraceLimits(),
) -> tuple[tuple[str, ...], str | None]:
    """Move the traces of a folder into another one; their names, and why something is missing, or None."""
    kept, left, total = list[str](), 0, 0
    for name, size in sorted(_offered(source, limits)):
        if len(kept) == limits.files or total + size > limits.bytes:
            left += 1
            continue
        (source / name).rename(target / name)
        kept.append(name)
        total += size
    traces = tuple(name for name in kept if name.endswith(TRACE))
    if left:
        most = f"{limits.files} files and {limits.bytes >> 20} MiB"
        return traces, f"{left} of the profiler's files are left out: at most {most} are kept; lower profile.requests"
    return traces, None if traces else "the engine wrote no trace"


def _offered(source: Path, limits: TraceLimits) -> Iterator[tuple[str, int]]:
    """The regular files with the name of a trace; links lead elsewhere."""
    with os.scandir(source) as entries:
        for entry in islice(entries, limits.entries):
            if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                yield entry.name, entry.stat(follow_symlinks=False).st_size
