"""Files and folders that survive a power cut: content and names are on disk when the call returns."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.errors import UsageError


def require_writable(folder: Path, setting: str) -> None:
    """Create a folder; raise UsageError, which names the setting of its place, where no file can be written in it."""
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}; set {setting} to a folder that can be written"
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write or replace a file in one step, with the folders that it needs; others may write it at the same time."""
    make_folder(path.parent)
    aside = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with aside.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        rename(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write or replace a text file in one step, as UTF-8."""
    write_bytes(path, text.encode())


def write_if_changed(path: Path, text: str) -> None:
    """Write or replace a file in one step: a reader sees the old one or the new one. An equal one stays as it is."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write or replace a JSON file in one step, with the same bytes for equal content."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def move_into_place(aside: Path, final: Path) -> None:
    """Give a file, or a folder with all that it has, its final name.

    It is on disk before the name is. So whoever finds the name, also after a power cut, finds everything.
    """
    _sync_tree(aside)
    rename(aside, final)


def rename(aside: Path, final: Path) -> None:
    """Give what is on disk already its final name, replacing the file that had it."""
    aside.replace(final)
    sync(final.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each on disk in its parent when this returns."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync_all(folder: Path) -> None:
    """Sync a folder, everything below it, and its name in its parent."""
    _sync_tree(folder)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Sync the content of a file, or the names that a folder has, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_tree(path: Path) -> None:
    for each in (path, *path.rglob("*")):
        sync(each)
