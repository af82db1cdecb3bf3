"""Run the meter against the truth server on this host, one load after another."""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.client_error.calibration import CalibrationTable, LoadCell, Point, calibration_id, measure_error, read_report
from bench.client_error.truth import read_truth
from bench.errors import CalibrationError, UnreadableResultError
from bench.loadgen.drivers.meter import METER_PLAN_VERSION, hosts_of, meter_argv
from bench.loadgen.drivers.target import ClientHost
from infra.hardware.cpu_affinity import run_on, split_cores
from infra.hardware.host_facts import read_host
from infra.loadgen.client_address import HERE, address_for
from infra.loadgen.truth.run import build_server, truth_server
from infra.reporting import Say
from infra.storage.store import write_json
from meter import METER_VERSION
from meter.bundle import bundle

OUTPUT_TOKENS, INPUT_TOKENS = 100, 64
WAVES, FEWEST = 3, 6  # measured requests: so many per stream, at least so many in all
TIMEOUT_S = 60.0
PATIENCE_S = 300.0  # for one cell: far more than it takes, so that a client that hangs is ended


@dataclass(frozen=True)
class CellOptions:
    """What the cells of one calibration share: the client's workers and hosts, lock step of the writes, and TLS."""

    workers: int = 1
    is_lock_step: bool = False
    is_tls: bool = False
    client_hosts: int = 0


@dataclass(frozen=True)
class Clients:
    """The client hosts, and the address under which they reach this computer; none: this computer is the client."""

    hosts: tuple[ClientHost, ...] = ()
    address: str = HERE


ALONE = Clients()


def cells(streams: Sequence[int], ttft_ms: float, itl_ms: float, kind: CellOptions = CellOptions()) -> list[LoadCell]:
    """A cell for each number of streams."""
    return [
        LoadCell(
            streams=count,
            ttft_ms=ttft_ms,
            itl_ms=itl_ms,
            output_tokens=OUTPUT_TOKENS,
            request_count=max(WAVES * count, FEWEST),
            workers=min(kind.workers, count),  # each worker has a stream
            is_lock_step=kind.is_lock_step,
            is_tls=kind.is_tls,
            client_hosts=kind.client_hosts,
        )
        for count in streams
    ]


def calibrate(
    load_cells: Sequence[LoadCell],
    cache: Path,
    say: Say,
    retry_until: float = -math.inf,
    hosts: tuple[ClientHost, ...] = (),
) -> Iterator[Point]:
    """Measure the meter's error in each cell, with client and server on cores of their own if there are enough.

    With client hosts the server listens where they reach it, and their way to it is a part of the error.
    Until `retry_until` on the monotonic clock, a cell that did not pass is measured again; each try is a point. Raises
    CalibrationError if the truth server or the meter fails.
    """
    server, clients = build_server(cache), Clients(hosts, address_for(hosts))
    for cell in load_cells:
        say(f"{cell.streams} streams of {cell.stream_tok_per_s:.0f} tokens per second")
        yield (point := _measure(cell, server, clients))
        while not point.passed and time.monotonic() < retry_until:
            yield (point := _measure(cell, server, clients))


def _measure(cell: LoadCell, server: Path, clients: Clients) -> Point:
    with tempfile.TemporaryDirectory(prefix="nightbench-calibrate-") as name:
        return run_cell(cell, server, Path(name), clients)


def table_of(points: tuple[Point, ...], began: float) -> CalibrationTable:
    """The table of these points, measured on this host since `began` on the monotonic clock."""
    host, made_at = read_host(), datetime.now(UTC)
    return CalibrationTable(
        calibration_id=calibration_id(made_at, host.hostname, points),
        made_at=made_at,
        took_s=time.monotonic() - began,
        hostname=host.hostname,
        kernel=host.kernel,
        cpu_model=host.cpu_model,
        meter_version=METER_VERSION,
        points=points,
    )


def keep_table(data: Path, table: CalibrationTable) -> None:
    """Write a table into the data folder."""
    write_json(data / "calibration" / f"{table.hostname}-{table.made_at:%Y-%m-%dT%H%M%S}Z.json", table)


def run_cell(cell: LoadCell, server: Path, work: Path, clients: Clients = ALONE) -> Point:
    """Measure one cell in an empty folder; CalibrationError if it fails."""
    on_server, on_client = split_cores(cell.workers)
    pem, ca = _certificate(work, clients.address) if cell.is_tls else (None, None)
    options = (*server_options(cell), "--address", clients.address, *(() if pem is None else ("--tls", str(pem))))
    with truth_server(server, work / "truth.log", options, on_server) as port:
        _drive(meter_command(cell, port, work, ca, clients), cell, on_client)
    load = work / "load"
    try:
        report = read_report(*((load / name).read_bytes() for name in ("meter.json", "requests.jsonl", "events.bin")))
        return measure_error(cell, read_truth((work / "truth.log").read_bytes()), report)
    except (OSError, UnreadableResultError, KeyError) as error:
        raise CalibrationError(f"the reports for {cell.streams} streams cannot be compared: {error}") from error


def _certificate(work: Path, address: str) -> tuple[Path, Path]:
    """Files of the truth server's key and certificate, and of its CA; only a night that leaves no machine has TLS."""
    from infra.remote.certificate import write_certificate  # noqa: PLC0415 - other machines lack its package

    return write_certificate(work, address)


def server_options(cell: LoadCell) -> tuple[str, ...]:
    """The truth server's schedule in this cell."""
    schedule = ("--ttft-us", str(round(cell.ttft_ms * 1e3)), "--itl-us", str(round(cell.itl_ms * 1e3)))
    return (*schedule, "--lockstep") if cell.is_lock_step else schedule


def meter_command(
    cell: LoadCell, port: int, work: Path, ca: Path | None = None, clients: Clients = ALONE
) -> tuple[str, ...]:
    """Write the meter and its plan into a folder; return the command that drives the cell into `load/` there."""
    tls = {} if ca is None else {"url": f"https://{clients.address}:{port}", "ca_file": str(ca)}
    hosts = {"hosts": hosts_of(clients.hosts)} if clients.hosts else {}
    return write_meter(_plan(cell, f"http://{clients.address}:{port}") | tls | hosts, work)


def write_meter(plan: dict[str, Any], work: Path) -> tuple[str, ...]:
    """Write the meter and this plan into a folder; return the command that runs it and reports to `load/` there."""
    meter, plan_file = work / "meter.pyz", work / "plan.json"
    bundle(meter)
    plan_file.write_text(json.dumps(plan))
    return meter_argv(Path(sys.executable), meter, plan_file, work / "load")


def _drive(argv: Sequence[str], cell: LoadCell, cores: frozenset[int]) -> None:
    try:
        code, err = run_on(argv, cores, PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise CalibrationError(
            f"the meter did not finish with {cell.streams} streams within {PATIENCE_S:g} s"
        ) from error
    if code != 0:
        raise CalibrationError(f"the meter failed with exit code {code} at {cell.streams} streams: {err}")


def _plan(cell: LoadCell, url: str) -> dict[str, Any]:
    return {
        "meter_plan_version": METER_PLAN_VERSION,
        "url": url,
        "path": "/v1/completions",
        "model": "truth",
        "load": {"kind": "closed", "concurrency": cell.streams},
        "prompts": {"kind": "random", "input_tokens": INPUT_TOKENS, "token_low": 0, "token_high": 1 << 17, "seed": 1},
        "output_tokens": cell.output_tokens,
        "request_count": cell.request_count,
        "warmup_count": cell.streams,
        "timeout_s": TIMEOUT_S,
        "workers": cell.workers,
        "kernel_stamps": True,
        "extra_body": {"ignore_eos": True, "return_token_ids": True},
    }
