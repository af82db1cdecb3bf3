"""Liveness lock: a file that its process keeps locked, and that the kernel frees when the process exits."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = "living"


@contextmanager
def liveness_lock(data: Path, name: str) -> Iterator[None]:
    """Hold a lock of this name during the block; a folder that cannot be written is ignored.

    The file is renamed to its place after it is locked, so that it is never free while its process runs. It is deleted
    at the end of the block, unless something was written to it: then it stays for whoever finds it free.
    """
    file = None
    with suppress(OSError):
        (data / FOLDER).mkdir(parents=True, exist_ok=True)
        partial = data / FOLDER / f".{name}.{os.getpid()}"
        file = partial.open("w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        partial.rename(data / FOLDER / name)
    try:
        yield
    finally:
        if file is not None:
            if not read_text(data, name):
                (data / FOLDER / name).unlink(missing_ok=True)
            file.close()


def keep_text(data: Path, name: str, text: str) -> None:
    """Write a text to the file of a lock that this process holds; a folder that cannot be written is ignored."""
    with suppress(OSError):
        (data / FOLDER / name).write_text(text, encoding="utf-8")


def read_text(data: Path, name: str) -> str:
    """The text in the file of a lock; empty if there is none."""
    try:
        return (data / FOLDER / name).read_text(encoding="utf-8")
    except OSError:
        return ""


def dead_names(data: Path) -> list[str]:
    """The names whose processes exited without removing their lock; call `remove_lock` once that is handled."""
    return [path.name for path in sorted((data / FOLDER).glob("[!.]*")) if _is_free(path)]


def living_names(data: Path) -> list[str]:
    """The names whose processes hold their lock."""
    return [path.name for path in sorted((data / FOLDER).glob("[!.]*")) if path.is_file() and not _is_free(path)]


def remove_lock(data: Path, name: str) -> None:
    """Delete the lock of a process that has exited."""
    (data / FOLDER / name).unlink(missing_ok=True)


def _is_free(path: Path) -> bool:
    try:
        with path.open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or gone since
        return False
    return True
