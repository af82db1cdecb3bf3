"""Our own client, with the kernel's receive stamps and without."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.client_error.calibration import MeterReports, read_report
from bench.client_error.truth import ClientTimes, middle_of
from benchmarks.clients.client import POOLED, Asked, Client, Said, Series, UnreadableError
from infra.loadgen.calibration import meter_command
from infra.reporting import Say
from meter import METER_VERSION

KERNEL, OWN, WITHOUT = "meter, kernel stamps", "meter, own stamps", "meter, kernel stamps off"
REPORT = ("meter.json", "requests.jsonl", "events.bin")


def install(_cache: Path, _say: Say) -> Path:
    """Nothing to install: a bundle is written for each run."""
    return Path()


def command(_program: Path, asked: Asked) -> tuple[str, ...]:
    """Drive the cell as the calibration does."""
    argv = meter_command(asked.cell, asked.port, asked.folder)
    change_plan(asked, warmup_count=asked.warmup_count, path=asked.path)
    return argv


def command_without(program: Path, asked: Asked) -> tuple[str, ...]:
    """Drive the cell without asking the kernel for its stamps."""
    argv = command(program, asked)
    change_plan(asked, kernel_stamps=False)
    return argv


def change_plan(asked: Asked, **changes: Any) -> None:
    """Write keys of the plan anew, and its prompts for a chat where it is one."""
    file = asked.folder / "plan.json"
    plan: dict[str, Any] = {**json.loads(file.read_bytes()), **changes}
    if asked.is_chat:
        kept = {key: value for key, value in plan["prompts"].items() if not key.startswith("token_")}
        plan["prompts"] = {**kept, "form": "chat"}  # words have no ids
    file.write_text(json.dumps(plan))


def read(folder: Path) -> Series:
    """Two rows of one run: by the kernel's stamps, from which results are made, and by our own reading of the clock."""
    report, planned, tokens = read_files(folder)
    rows = {OWN: said(report.user, report, planned, tokens)}
    return rows if report.kernel is None else {KERNEL: said(report.kernel, report, planned, tokens), **rows}


def read_without(folder: Path) -> Series:
    """One row, by our own reading of the clock."""
    report, planned, tokens = read_files(folder)
    return {WITHOUT: said(report.user, report, planned, tokens)}


def read_files(folder: Path) -> tuple[MeterReports, int, int]:
    """The report, how many measured requests were planned, and the tokens of the good ones."""
    files = [folder / "load" / name for name in REPORT]
    if not all(file.exists() for file in files):
        raise UnreadableError(f"the meter left no {', '.join(file.name for file in files if not file.exists())}")
    header, rows, events = (file.read_bytes() for file in files)
    every = [json.loads(line) for line in rows.splitlines()]
    good = [row for row in every if row["phase"] == "measured" and row["outcome"] == "ok"]
    tokens = sum(row["output_tokens_counted"] for row in good)
    return read_report(header, rows, events), int(json.loads(header)["plan"]["request_count"]), tokens


def said(seen: ClientTimes, report: MeterReports, planned: int, tokens: int) -> Said:
    """One row of the meter's report."""
    return Said(
        ttft_ms=seen.ttft_ms,
        itl_ms=seen.gaps_ms,
        itl_metric=POOLED,
        ok=report.ok,
        failed=planned - report.ok,
        output_tokens=tokens,
        ids=seen.ids,
        live_streams=live(seen),
    )


def live(seen: ClientTimes) -> float | None:
    """Streams alive in the middle of the run, weighted by time, as the meter saw them; None without an event."""
    has = np.diff(seen.at) > 0
    if not has.any():
        return None
    begin, end = middle_of(seen)
    ended = seen.event_ns[seen.at[1:][has] - 1]
    overlap = np.minimum(ended, end) - np.maximum(seen.send_ns[has], begin)
    return float(np.maximum(overlap, 0).sum() / (end - begin))


CLIENT = Client("meter", METER_VERSION, install, command, read, (KERNEL, OWN))
WITHOUT_KERNEL_STAMPS = Client("meter-plain", METER_VERSION, install, command_without, read_without, (WITHOUT,))
