"""What is accepted of the files that another machine or a bucket offers: names by pattern, sizes and numbers bounded.

Either may be hostile. A name must lead nowhere but below its night, and nothing may fill the disk.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.errors import RefusedFileError

_PART = r"(?!\.\.?(?:/|$))[\w.][\w.,:;+=@%~ -]{0,199}"
_NIGHT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUN_FILE = re.compile(rf"{_PART}(?:/{_PART}){{0,7}}", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """The most that is accepted at once."""

    file_bytes: int = 4 << 30
    total_bytes: int = 8 << 30
    count: int = 1_000


RUN_LIMITS = Limits()
NIGHT_LIMITS = Limits(total_bytes=64 << 30, count=100_000)


def is_night(name: str) -> bool:
    """Whether this may be the id of a night."""
    return _NIGHT.fullmatch(name) is not None


def require_accepted(sizes: Mapping[str, int], limits: Limits, origin: str) -> None:
    """Raise RefusedFileError where the name or the size of a file is not accepted; `.` is what is copied itself."""
    if len(sizes) > limits.count:
        raise RefusedFileError(
            f"{origin} offers {len(sizes):,} files and at most {limits.count:,} are accepted; nothing was copied"
        )
    for name, size in sizes.items():
        if name != "." and _RUN_FILE.fullmatch(name) is None:
            raise RefusedFileError(f"{origin} offers a file that no run has: {name[:200]!r}; it was not copied")
        if size > limits.file_bytes:
            raise RefusedFileError(
                f"{origin} offers {name} with {size:,} bytes and at most {limits.file_bytes:,} are accepted; "
                "it was not copied"
            )
    total = sum(sizes.values())
    if total > limits.total_bytes:
        raise RefusedFileError(
            f"{origin} offers {total:,} bytes and at most {limits.total_bytes:,} are accepted; nothing was copied"
        )
