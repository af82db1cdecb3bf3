"""The output folder: each file appears whole or not at all, and meter.json comes last."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from meter.errors import OutsideWorldError, UsageError


def claim(folder: Path) -> None:
    """Make the output folder; raises UsageError when it holds anything, since a record is written once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_taken = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"The output folder {folder} is not a folder.") from error
    except OSError as error:
        raise OutsideWorldError(f"The output folder {folder} cannot be made: {error}.") from error
    if is_taken:
        raise UsageError(f"The output folder {folder} is not empty; give the name of a new one.")


def write_whole(path: Path, lines: Iterable[str]) -> None:
    """Write beside, flush to the disk, then put in place."""
    beside = path.with_name(f".{path.name}.partial")
    with beside.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_report(folder: Path, rows: Iterable[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write requests.jsonl, then meter.json; whoever finds meter.json finds everything."""
    write_whole(folder / "requests.jsonl", (json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    write_whole(folder / "meter.json", [json.dumps(summary, indent=1) + "\n"])


def write_progress(folder: Path, done: int, planned: int) -> None:
    """Say how far the run is; not flushed to the disk, because it is called while the clock runs."""
    beside = folder / ".progress.json.partial"
    beside.write_text(f'{{"done":{done},"planned":{planned}}}\n', encoding="utf-8")
    beside.replace(folder / "progress.json")
