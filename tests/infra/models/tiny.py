"""The tiny generated model, made once a process: to make it takes longer than most tests that need one."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.models.generated import TINY, write_small_model


@cache
def _made() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory(prefix="nightbench-tiny-")
    write_small_model(Path(folder.name), shape=TINY)
    return folder


def copy_tiny_model(folder: Path) -> None:
    """Copy the model of seed 0 into this folder, which is created if missing."""
    shutil.copytree(_made().name, folder, dirs_exist_ok=True)
