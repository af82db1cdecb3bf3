"""The text of a MANIFEST.sha256: one line a file with its SHA-256 and its name, as `sha256sum --check` reads it."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from bench.errors import UnreadableResultError

MANIFEST = "MANIFEST.sha256"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def manifest_text(sha256_by_name: Mapping[str, str]) -> str:
    """The manifest of these files, sorted by name."""
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sha256_by_name.items()))


def parse_manifest(text: str) -> dict[str, str]:
    """The SHA-256 of each listed file by its name.

    Raises UnreadableResultError for a line in another form, and for a name that leads out of the folder.
    """
    listed: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or ".." in PurePosixPath(match[2]).parts or match[2].startswith("/"):
            raise UnreadableResultError(f"{MANIFEST} line {number} is not a SHA-256 and a file name: {line!r}")
        listed[match[2]] = match[1]
    return listed
