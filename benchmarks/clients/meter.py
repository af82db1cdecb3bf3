"""The meter, with and without the kernel's receive timestamps."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.client_error.calibration import MeterReports, read_report
from bench.client_error.truth import ClientTimes, middle_of
from benchmarks.clients.client import POOLED, Client, ClientReport, ClientTask, Series, UnreadableError
from infra.loadgen.calibration import meter_command
from infra.reporting import Say
from meter import METER_VERSION

KERNEL, OWN, WITHOUT = "meter, kernel stamps", "meter, own stamps", "meter, kernel stamps off"
REPORT = ("meter.json", "requests.jsonl", "events.bin")


def install(_cache: Path, _say: Say) -> Path:
    """Nothing to install; each run writes its own bundle."""
    return Path()


def command(_program: Path, task: ClientTask) -> tuple[str, ...]:
    """The command of the calibration for this cell."""
    argv = meter_command(task.cell, task.port, task.folder)
    change_plan(task, warmup_count=task.warmup_count, path=task.path)
    return argv


def command_without(program: Path, task: ClientTask) -> tuple[str, ...]:
    """The same command without kernel timestamps."""
    argv = command(program, task)
    change_plan(task, kernel_stamps=False)
    return argv


def change_plan(task: ClientTask, **changes: Any) -> None:
    """Replace keys of the plan, and its prompts if the task is a chat."""
    file = task.folder / "plan.json"
    plan: dict[str, Any] = {**json.loads(file.read_bytes()), **changes}
    if task.is_chat:
        kept = {key: value for key, value in plan["prompts"].items() if not key.startswith("token_")}
        plan["prompts"] = {**kept, "form": "chat"}  # words have no ids
    file.write_text(json.dumps(plan))


def read(folder: Path) -> Series:
    """Two rows of one run: by kernel timestamps, which results use, and by the meter's own clock readings."""
    report, planned, tokens = read_files(folder)
    rows = {OWN: report_of(report.user, report, planned, tokens)}
    return rows if report.kernel is None else {KERNEL: report_of(report.kernel, report, planned, tokens), **rows}


def read_without(folder: Path) -> Series:
    """One row, by the meter's own clock readings."""
    report, planned, tokens = read_files(folder)
    return {WITHOUT: report_of(report.user, report, planned, tokens)}


def read_files(folder: Path) -> tuple[MeterReports, int, int]:
    """The report, the number of planned measured requests, and the tokens of the good ones."""
    files = [folder / "load" / name for name in REPORT]
    if not all(file.exists() for file in files):
        raise UnreadableError(f"the meter left no {', '.join(file.name for file in files if not file.exists())}")
    header, rows, events = (file.read_bytes() for file in files)
    every = [json.loads(line) for line in rows.splitlines()]
    good = [row for row in every if row["phase"] == "measured" and row["outcome"] == "ok"]
    tokens = sum(row["output_tokens_counted"] for row in good)
    return read_report(header, rows, events), int(json.loads(header)["plan"]["request_count"]), tokens


def report_of(seen: ClientTimes, report: MeterReports, planned: int, tokens: int) -> ClientReport:
    """One row of the meter's report."""
    return ClientReport(
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
