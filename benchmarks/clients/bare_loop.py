"""The floor: a loop that does nothing but wait, read, stamp and store, in the meter's own language."""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks import bare_loop
from benchmarks.clients.client import POOLED, Asked, Client, Said, Series, UnreadableError
from infra.reporting import Say

NAME, VERSION = "bare loop in Python", "1"


def install(_cache: Path, _say: Say) -> Path:
    """Nothing to install."""
    return Path(bare_loop.__file__)


def command(program: Path, asked: Asked) -> tuple[str, ...]:
    """Drive the cell."""
    cell = asked.cell
    counts = (asked.port, cell.streams, asked.warmup_count, cell.request_count, cell.output_tokens)
    return (sys.executable, "-I", str(program), *map(str, counts), str(asked.folder / "bare.json"))


def read(folder: Path) -> Series:
    """Every read counts as a token, so times are those of reads."""
    try:
        found = json.loads((folder / "bare.json").read_bytes())
        ttft_ms, gap_ms = np.array(found["ttft_ms"]), np.array(found["gap_ms"])
    except (OSError, ValueError, KeyError) as error:
        raise UnreadableError(f"the bare loop left no times: {error!r}") from error
    said = Said(ttft_ms=ttft_ms, itl_ms=gap_ms, itl_metric=POOLED, ok=len(ttft_ms), failed=0, output_tokens=None)
    return {NAME: said}


CLIENT = Client("bare-loop", VERSION, install, command, read, (NAME,), judges_answers=False)
