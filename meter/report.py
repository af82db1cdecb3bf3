"""The output folder: each file is written atomically, meter.json last."""

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from meter.errors import OutsideWorldError, UsageError
from meter.plan import Plan
from meter.record import Part

EVENT_BYTES, ROW_BYTES = 25, 1500  # a line of requests.jsonl has about 1,000
OTHER_EVENTS = 5  # role, finish, usage, [DONE], a comment
SPARE_BYTES = 1 << 16


def claim(folder: Path) -> None:
    """Create the output folder; raises UsageError if it is not empty, since a record is written once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_taken = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"The output folder {folder} is not a folder.") from error
    except OSError as error:
        raise OutsideWorldError(f"The output folder {folder} cannot be created: {error}.") from error
    if is_taken:
        raise UsageError(f"The output folder {folder} is not empty: name a new one.")


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write beside, flush to the disk, then put in place."""
    beside = path.with_name(f".{path.name}.partial")
    try:
        with beside.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def report_bytes(plan: Plan) -> int:
    """The approximate upper limit of the report's size; it includes the plan, and so its trace."""
    events = plan.output_tokens + OTHER_EVENTS
    return plan.total_count * (ROW_BYTES + events * EVENT_BYTES) + 2 * len(json.dumps(plan.raw)) + SPARE_BYTES


def write_report(folder: Path, part: Part, summarise: Callable[[Part], dict[str, Any]]) -> None:
    """Write the events by column, the requests, then meter.json, whose presence means the report is complete.

    Raises OutsideWorldError where the disk is full or broken; as many of the first requests as fit are then kept, and
    their meter.json says that they are not all.
    """
    try:
        _write(folder, part, summarise(part))
    except OSError as error:
        text = f"the report cannot be written to {folder}: {error.strerror}"
        kept = _write_what_fits(folder, part, summarise, text)
        raise OutsideWorldError(f"{text}; {kept} of {len(part.rows)} requests were kept.") from error


def _write(folder: Path, part: Part, summary: dict[str, Any]) -> None:
    write_whole(folder / "events.bin", part.events.pack())
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in part.rows)
    write_whole(folder / "requests.jsonl", (line.encode() for line in lines))
    write_whole(folder / "meter.json", [json.dumps(summary, indent=1).encode() + b"\n"])


def _write_what_fits(folder: Path, part: Part, summarise: Callable[[Part], dict[str, Any]], text: str) -> int:
    """Try again with half of the requests, then half of those; return how many were kept."""
    count = len(part.rows) // 2
    while count:
        fewer = part.first(count)
        try:
            _write(folder, fewer, {**summarise(fewer), "ended_by": text, "complete": False})
        except OSError:
            count //= 2
        else:
            return count
    return 0


def write_progress(folder: Path, done: int, planned: int) -> None:
    """Write how far the run is; ignore a full disk, as progress is not worth failing a run."""
    beside = folder / ".progress.json.partial"
    with contextlib.suppress(OSError):
        beside.write_text(f'{{"done":{done},"planned":{planned}}}\n', encoding="utf-8")
        beside.replace(folder / "progress.json")
