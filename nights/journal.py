"""A journal: staged files come into place together, even if a load or fetch is killed between two of them.

It is written when everything is staged and on disk, and deleted when everything is in place. What is
killed before has changed nothing. What is killed after is completed by the next writer or reader. A step that was done
is not repeated. A root is the folder of a lake or of a night.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nights.durable import make_folder, rename, sync, write_json

JOURNAL = ".journal.json"
Move = tuple[str, str]  # from, to: files or folders, relative to the folder of the root


def commit(root: Path, staging: Path, moves: Sequence[Move], removed: Sequence[str]) -> None:
    """Move staged files and folders into place, and remove others: all or, until the journal is written, nothing."""
    if not moves and not removed:
        return
    with _swapping(root):
        new = staging / JOURNAL
        write_json(new, {"moves": moves, "removed": removed})
        rename(new, root / JOURNAL)
        _carry_out(root)


def complete(root: Path) -> None:
    """Complete what was killed, if there is something; what is coming into place is waited for."""
    if is_pending(root):
        with _swapping(root):
            if is_pending(root):
                _carry_out(root)


def is_pending(root: Path) -> bool:
    """Whether files are coming into place, or what moved them was killed while they did."""
    return (root / JOURNAL).exists()


@contextmanager
def _swapping(root: Path) -> Iterator[None]:
    """Wait for whoever is moving files; that takes a moment, unlike a load, which has another lock."""
    with (root / ".swap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _carry_out(root: Path) -> None:
    journal = json.loads((root / JOURNAL).read_bytes())
    changed = {
        *(_moved(root.parent / source, root.parent / target) for source, target in journal["moves"]),
        *(_removed(root.parent / name) for name in journal["removed"]),
    }
    for folder in changed:
        sync(folder)
    (root / JOURNAL).unlink()
    sync(root)


def _moved(source: Path, target: Path) -> Path:
    """Move a file or folder, unless that is done; returns the folder that has it now."""
    make_folder(target.parent)
    if source.exists():
        if target.is_dir():
            shutil.rmtree(target)
        source.replace(target)
    return target.parent


def _removed(path: Path) -> Path:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path.parent
