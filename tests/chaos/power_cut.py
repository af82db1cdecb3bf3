"""A power cut in a storm: of what a night wrote, only what was synced is sure to be on disk, and the rest by chance.

The night's process notes each sync. After its end, some folders get the names that they had at their last sync, and
some files that were written after theirs are cut. The ledger is not touched: SQLite syncs by itself, in C.
"""

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.place import Place

SYNCED = "synced.jsonl"  # a line for each sync of a file or folder, in their order


@contextmanager
def syncs_noted(place: Place) -> Iterator[None]:
    """Note each sync of this process below the place's runs."""
    log = os.open(place.notes / SYNCED, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    fsync, runs = os.fsync, runs_of(place).resolve()

    def noted(handle: int) -> None:
        fsync(handle)
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_relative_to(runs):
            os.write(log, f"{json.dumps(_as_synced(path, handle))}\n".encode())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        yield


def runs_of(place: Place) -> Path:
    """The folder of all nights."""
    return place.data / "runs"


def _as_synced(path: Path, handle: int) -> list[object]:
    of_file = os.fstat(handle)
    if path.is_dir():
        return [of_file.st_ino, {each.name: each.lstat().st_ino for each in path.iterdir()}]
    return [of_file.st_ino, [of_file.st_size, of_file.st_mtime_ns]]


def lose_power(place: Place, seed: int) -> None:
    """Leave on disk what a power cut may leave of what was written until now."""
    dice = random.Random(f"power {seed}")
    log = place.notes / SYNCED
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    synced = dict(json.loads(line) for line in lines if line.endswith("\n"))
    runs = runs_of(place)
    if not runs.exists():
        return
    for path in sorted(one for one in runs.rglob("*") if one.is_file()):
        found = path.stat()
        if synced.get(found.st_ino) != [found.st_size, found.st_mtime_ns] and dice.random() < 0.5:
            os.truncate(path, dice.randint(0, found.st_size))
    where = {path.lstat().st_ino: path for path in (runs, *runs.rglob("*"))}
    for folder in [one for one in where.values() if one.is_dir()]:
        if folder.exists() and dice.random() < 0.5:
            names = synced.get(folder.lstat().st_ino)
            _revert(folder, names if isinstance(names, dict) else {}, where, place.notes / "lost")


def _revert(folder: Path, names: dict[str, int], where: dict[int, Path], lost: Path) -> None:
    """Give a folder the names of its last sync; what is known under none of them is lost.

    A file that was replaced since then has its new content: its old one is not known any more.
    """
    lost.mkdir(exist_ok=True)
    for path in list(folder.iterdir()):
        number, known = path.lstat().st_ino, names.get(path.name)
        if known != number and (known is None or known in where):
            path.rename(lost / str(number))
            where[number] = lost / str(number)
    for name, number in names.items():
        if number in where and where[number].exists() and not (folder / name).exists():
            where[number].rename(folder / name)
            where[number] = folder / name
