"""A sign of life that nobody renews: a file that its process holds locked, and that the kernel frees when it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = "living"


@contextmanager
def liveness_lock(data: Path, name: str) -> Iterator[None]:
    """Hold a lock of this name while the block lasts; a folder that cannot be written keeps nobody from working.

    The file comes to its place already locked, so that nobody finds it free while its process lives.
    """
    file = None
    with suppress(OSError):
        (data / FOLDER).mkdir(parents=True, exist_ok=True)
        being_made = data / FOLDER / f".{name}.{os.getpid()}"
        file = being_made.open("w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        being_made.rename(data / FOLDER / name)
    try:
        yield
    finally:
        if file is not None:
            (data / FOLDER / name).unlink(missing_ok=True)
            file.close()


def dead_names(data: Path) -> list[str]:
    """The names whose processes died without saying so. `forget` them once that is told."""
    return [path.name for path in sorted((data / FOLDER).glob("[!.]*")) if _is_free(path)]


def remove_lock(data: Path, name: str) -> None:
    """Remove a dead one's file."""
    (data / FOLDER / name).unlink(missing_ok=True)


def _is_free(path: Path) -> bool:
    try:
        with path.open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or gone since
        return False
    return True
