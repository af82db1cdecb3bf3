"""Run the meter against the truth server on this host, one number of streams after another."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.calibration import CalibrationTable, Cell, Point, measure_error, read_report
from bench.errors import CalibrationError
from bench.load import METER_PLAN_VERSION, meter_argv
from bench.truth import read_truth
from infra.facts import read_host
from infra.store import write_json
from infra.truth.run import build_server, pin, truth_server
from meter import METER_VERSION
from meter.bundle import bundle

OUTPUT_TOKENS, INPUT_TOKENS = 100, 64
WAVES, FEWEST = 3, 6  # measured requests: so many a stream
TIMEOUT_S = 60.0


def cells(streams: Sequence[int], ttft_ms: float, itl_ms: float) -> list[Cell]:
    """A cell for each number of streams."""
    return [Cell(count, ttft_ms, itl_ms, OUTPUT_TOKENS, max(WAVES * count, FEWEST)) for count in streams]


def calibrate(asked: Sequence[Cell], cache: Path, say: Callable[[str], None]) -> Iterator[Point]:
    """Measure the meter's error in each cell, client and server on a core of their own where there are two.

    Raises CalibrationError where server or meter cannot do their part.
    """
    server = build_server(cache)
    for cell in asked:
        say(f"{cell.streams} streams")
        with tempfile.TemporaryDirectory(prefix="nightbench-calibrate-") as name:
            yield run_cell(cell, server, Path(name))


def keep_table(data: Path, points: tuple[Point, ...]) -> CalibrationTable:
    """Write the table of this host, now, into the data folder."""
    host, made_at = read_host(), datetime.now(UTC)
    table = CalibrationTable(
        made_at=made_at,
        hostname=host.hostname,
        kernel=host.kernel,
        cpu_model=host.cpu_model,
        meter_version=METER_VERSION,
        points=points,
    )
    write_json(data / "calibration" / f"{host.hostname}-{made_at:%Y-%m-%dT%H%M%S}Z.json", table)
    return table


def run_cell(cell: Cell, server: Path, work: Path) -> Point:
    """Measure one cell in an empty folder."""
    on_server, on_client = two_cores()
    with truth_server(server, work / "truth.log", server_options(cell), on_server) as port:
        _drive(meter_command(cell, port, work), cell, on_client)
    load = work / "load"
    report = read_report(*((load / name).read_bytes() for name in ("meter.json", "requests.jsonl", "events.bin")))
    return measure_error(cell, read_truth((work / "truth.log").read_bytes()), report)


def two_cores() -> tuple[int | None, int | None]:
    """A core for the server and one for the client; None where this process may use only one."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (cores[0], cores[1]) if len(cores) > 1 else (None, None)


def server_options(cell: Cell) -> tuple[str, ...]:
    """The truth server's schedule in this cell."""
    return ("--ttft-us", str(round(cell.ttft_ms * 1e3)), "--itl-us", str(round(cell.itl_ms * 1e3)))


def meter_command(cell: Cell, port: int, work: Path) -> tuple[str, ...]:
    """Write the meter and its plan into a folder; return the command that drives the cell into `load/` there."""
    meter, plan = work / "meter.pyz", work / "plan.json"
    bundle(meter)
    plan.write_text(json.dumps(_plan(cell, port)))
    return meter_argv(Path(sys.executable), meter, plan, work / "load")


def _drive(argv: Sequence[str], cell: Cell, core: int | None) -> None:
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            pin(process.pid, core)
            _out, said = process.communicate()
        finally:
            process.kill()  # nothing, where it has ended
    if process.returncode != 0:
        raise CalibrationError(f"the meter ended with {process.returncode} at {cell.streams} streams: {said.strip()}")


def _plan(cell: Cell, port: int) -> dict[str, Any]:
    return {
        "meter_plan_version": METER_PLAN_VERSION,
        "url": f"http://127.0.0.1:{port}",
        "path": "/v1/completions",
        "model": "truth",
        "load": {"kind": "closed", "concurrency": cell.streams},
        "prompts": {"kind": "random", "input_tokens": INPUT_TOKENS, "token_low": 0, "token_high": 1 << 17, "seed": 1},
        "output_tokens": cell.output_tokens,
        "request_count": cell.request_count,
        "warmup_count": cell.streams,
        "timeout_s": TIMEOUT_S,
        "workers": 1,
        "kernel_stamps": True,
        "extra_body": {"ignore_eos": True, "return_token_ids": True},
    }
