"""Files and folders that are on disk, also in the list of names of their folder, when the call returns."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and flush it to disk."""
    make_folder(path.parent)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Write text and flush it to disk."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with stable bytes for equal content."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def replace_text(path: Path, text: str) -> None:
    """Write text under its final name in one step; others may write it meanwhile."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        write_text(beside, text)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders_below(folder: Path) -> None:
    """Flush the entries of each folder below this one, its own, and its entry."""
    sync_folder(folder.parent)
    sync_folder(folder)
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_folder(path)
