"""Files that a machine offers: its listing, checked, and one stream of them, divided again."""

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NoReturn

from bench.errors import RefusedFileError
from infra.storage.accepted import Limits, require_accepted

FORMAT = r"%y %s %P\0"
_ENTRY = re.compile(r"(?P<kind>[a-zA-Z]) (?P<size>[0-9]{1,18}) (?P<name>.*)", re.DOTALL)
KINDS = {"l": "a symbolic link", "p": "a pipe", "s": "a socket", "b": "a device", "c": "a device"}


def listed_entries(listing: str) -> Iterator[tuple[str, int, str]]:
    """Kind, size and name of each entry that `find` printed as FORMAT; `.` is what was listed itself."""
    for entry in filter(None, listing.split("\0")):
        match = _ENTRY.fullmatch(entry)
        yield (match["kind"], int(match["size"]), match["name"] or ".") if match else ("?", 0, entry)


def offered_files(listing: str, limits: Limits, origin: str) -> tuple[list[str], dict[str, int]]:
    """The folders, and the size of each file, of a listing; RefusedFileError where one of them is not accepted."""
    folders, sizes = list[str](), dict[str, int]()
    for kind, size, name in listed_entries(listing):
        if kind == "d":
            folders.append(name)
        elif kind == "f":
            sizes[name] = size
        else:
            refuse(origin, name, kind)
    require_accepted(dict.fromkeys(folders, 0) | sizes, limits, origin)
    parents = {str(parent) for name in (*folders, *sizes) for parent in PurePosixPath(name).parents}
    if both := sorted(sizes.keys() & {*folders, *parents}):
        raise RefusedFileError(f"{origin} offers {both[0]} as a file and as a folder; it was not copied")
    return folders, sizes


def refuse(origin: str, name: str, kind: str) -> NoReturn:
    """Raise RefusedFileError for what is neither a file nor a folder; `kind` is the letter of `find` for it."""
    what = KINDS.get(kind, "not a file")
    raise RefusedFileError(f"{origin} offers {name[:200]!r}, which is {what}; it was not copied")


class Splitter:
    """Divides one stream among files of known sizes."""

    def __init__(self, root: Path, sizes: Mapping[str, int]) -> None:
        self._missing = deque((root / name, size) for name, size in sizes.items() if size)
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Append to the files, in their order."""
        self._digest.update(data)
        while data:
            path, size = self._missing.popleft()
            with path.open("ab") as sink:
                sink.write(data[:size])
            if len(data) < size:
                self._missing.appendleft((path, size - len(data)))
            data = data[size:]

    def is_complete(self, sha256: str) -> bool:
        """Whether every file has its size, and the whole stream this SHA-256."""
        return not self._missing and self._digest.hexdigest() == sha256
