"""Which golden images this data folder's nights made: only these are deleted before they expire.

Each is an empty file named by the image's id, so that nights side by side note theirs without a lock.
"""

from pathlib import Path

from infra.clouds.cloud import Snapshot
from nights import durable

FOLDER = "images"


def note_made(data: Path, image: Snapshot) -> None:
    """Note an image that was made here."""
    durable.write_text(data / FOLDER / image.snapshot_id, "")


def made_here(data: Path) -> frozenset[str]:
    """The ids of the images that were made here, whether they still exist or not."""
    folder = data / FOLDER
    return frozenset(path.name for path in folder.iterdir() if path.name[0] != ".") if folder.is_dir() else frozenset()
