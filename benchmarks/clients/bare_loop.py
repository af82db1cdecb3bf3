"""The bare loop as a client: it only waits, reads, times and stores, in Python as the meter."""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks import bare_loop
from benchmarks.clients.client import POOLED, Client, ClientReport, ClientTask, Series, UnreadableError
from infra.reporting import Say

NAME, VERSION = "bare loop in Python", "1"


def install(_cache: Path, _say: Say) -> Path:
    """Nothing to install."""
    return Path(bare_loop.__file__)


def command(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command for a cell."""
    cell = task.cell
    counts = (task.port, cell.streams, task.warmup_count, cell.request_count, cell.output_tokens)
    return (sys.executable, "-I", str(program), *map(str, counts), str(task.folder / "bare.json"))


def read(folder: Path) -> Series:
    """Read the times; every read counts as a token."""
    try:
        found = json.loads((folder / "bare.json").read_bytes())
        ttft_ms, gap_ms = np.array(found["ttft_ms"]), np.array(found["gap_ms"])
    except (OSError, ValueError, KeyError) as error:
        raise UnreadableError(f"the bare loop left no times: {error!r}") from error
    count = len(ttft_ms)
    report = ClientReport(ttft_ms=ttft_ms, itl_ms=gap_ms, itl_metric=POOLED, ok=count, failed=0, output_tokens=None)
    return {NAME: report}


CLIENT = Client("bare-loop", VERSION, install, command, read, (NAME,), judges_answers=False)
