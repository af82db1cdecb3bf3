"""The output folder: each file appears whole or not at all, and meter.json comes last."""

import json
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from meter.errors import OutsideWorldError, UsageError

NO_TIME = -(2**63)  # in events.bin, where there is no null
EVENT_COLUMNS = ("event_at_ns", "event_kernel_ns", "event_tokens")


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


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write beside, flush to the disk, then put in place."""
    beside = path.with_name(f".{path.name}.partial")
    with beside.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def pack_events(rows: Sequence[dict[str, Any]]) -> bytes:
    """Pack the events of all requests by column: n user times, n kernel times (int64), n token counts (int32).

    Little-endian. A time that is missing is NO_TIME, since no event can be there.
    """
    seen = [at for row in rows for at in row["event_at_ns"]]
    kernel = [at for row in rows for at in row["event_kernel_ns"] or [None] * row["event_count"]]
    tokens = [count for row in rows for count in row["event_tokens"]]
    stamped = [NO_TIME if at is None else at for at in kernel]
    return struct.pack(f"<{len(seen)}q{len(stamped)}q{len(tokens)}i", *seen, *stamped, *tokens)


def write_report(folder: Path, rows: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write the events by column, the requests without them, then meter.json; who finds that one finds everything."""
    write_whole(folder / "events.bin", [pack_events(rows)])
    requests = ({key: value for key, value in row.items() if key not in EVENT_COLUMNS} for row in rows)
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in requests)
    write_whole(folder / "requests.jsonl", (line.encode() for line in lines))
    write_whole(folder / "meter.json", [json.dumps(summary, indent=1).encode() + b"\n"])


def write_progress(folder: Path, done: int, planned: int) -> None:
    """Say how far the run is; not flushed to the disk, because it is called while the clock runs."""
    beside = folder / ".progress.json.partial"
    beside.write_text(f'{{"done":{done},"planned":{planned}}}\n', encoding="utf-8")
    beside.replace(folder / "progress.json")
