"""Sizes and hashes of a model's files."""

import hashlib
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.errors import ModelError
from infra.processes import cancellation
from infra.storage.store import sha256

_PART = re.compile(r"-(\d{5})-of-\d{5}$")  # the end of the name of one of several parts
HASHERS = 8  # files hashed at a time; hashing frees the interpreter, and a disk array gives more than one core can hash


def size_of(path: Path) -> int | None:
    """The size of a file; None if it is missing or not a regular file."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def gguf_of(folder: Path) -> Path:
    """The GGUF file of a model's folder; of one in several parts, the first.

    Raises ModelError if there is none, or several that are not parts of one.
    """
    found = sorted(folder.glob("*.gguf"))
    firsts = [one for one in found if (part := _PART.search(one.stem)) is None or int(part[1]) == 1]
    if len(firsts) == 1:
        return firsts[0]
    names = ", ".join(one.name for one in firsts) or "none"
    raise ModelError(f"{folder} must hold one GGUF file, and holds {names}: llama.cpp serves one file")


def bytes_under(folder: Path) -> int:
    """The bytes of every file below a folder; a file that is deleted meanwhile counts 0."""
    return sum(size_of(Path(where) / name) or 0 for where, _folders, names in os.walk(folder) for name in names)


def hash_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each named file, several at a time."""
    with ThreadPoolExecutor(HASHERS) as pool:
        hashes = {}
        try:
            for name, digest in zip(names, pool.map(lambda name: sha256(folder / name), names), strict=True):
                cancellation.check()
                hashes[name] = digest
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return hashes


def git_sha1(path: Path) -> str:
    """Git's hash of a file's content, which the hub lists for files that are small enough to be in git."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\x00" % len(content) + content, usedforsecurity=False).hexdigest()
