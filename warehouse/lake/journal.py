"""The journal of a load: staged files come into place together, even if the load is killed between two of them.

It is written when everything is staged and on disk, and deleted when everything is in place. A load that is killed
before has changed nothing. One that is killed after it is completed by the next loader or reader. A step that was
done is not repeated.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nights.durable import make_folder, rename, sync, write_json

JOURNAL = ".journal.json"
Move = tuple[str, str]  # from, to: files or folders, relative to the data folder


def commit(lake: Path, staging: Path, moves: Sequence[Move], removed: Sequence[str]) -> None:
    """Move staged files and folders into place, and remove folders: all or, until the journal is written, nothing."""
    if not moves and not removed:
        return
    with _swapping(lake):
        new = staging / JOURNAL
        write_json(new, {"moves": moves, "removed": removed})
        rename(new, lake / JOURNAL)
        _carry_out(lake)


def complete(lake: Path) -> None:
    """Complete the load that was killed, if there is one; a load that is coming into place is waited for."""
    if is_pending(lake):
        with _swapping(lake):
            if is_pending(lake):
                _carry_out(lake)


def is_pending(lake: Path) -> bool:
    """Whether a load is coming into place, or was killed while it did."""
    return (lake / JOURNAL).exists()


@contextmanager
def _swapping(lake: Path) -> Iterator[None]:
    """Wait for whoever is moving files; that takes a moment, unlike a load, which has another lock."""
    with (lake / ".swap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _carry_out(lake: Path) -> None:
    journal = json.loads((lake / JOURNAL).read_bytes())
    changed = {
        *(_moved(lake.parent / source, lake.parent / target) for source, target in journal["moves"]),
        *(_removed(lake.parent / name) for name in journal["removed"]),
    }
    for folder in changed:
        sync(folder)
    (lake / JOURNAL).unlink()
    sync(lake)


def _moved(source: Path, target: Path) -> Path:
    """Move a file or folder, unless that is done; returns the folder that has it now."""
    make_folder(target.parent)
    if source.exists():
        if target.is_dir():
            shutil.rmtree(target)
        source.replace(target)
    return target.parent


def _removed(folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    return folder.parent
