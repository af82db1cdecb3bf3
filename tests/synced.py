"""Which files and folders were synced to disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def synced() -> Iterator[set[Path]]:
    """What this process syncs during the block; each sync is done as always."""
    seen: set[Path] = set()
    fsync = os.fsync

    def note(handle: int) -> None:
        seen.add(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", note)
        yield seen
