"""Run one client in one cell, and compare its report with the server's own log."""

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.client_error.calibration import LoadCell
from bench.client_error.truth import (
    ClientTimes,
    Truth,
    at_places,
    mean_live,
    middle_of,
    nearest_rank,
    read_truth,
    select,
)
from bench.errors import CalibrationError, UnreadableResultError
from benchmarks.client_result import Numbers, Run
from benchmarks.clients.client import Client, ClientReport, ClientTask, UnavailableError, UnreadableError
from benchmarks.process_tree import ClientFailedError, CpuWatch, run_tree
from infra.hardware.cpu_affinity import two_cores
from infra.loadgen.calibration import server_options
from infra.loadgen.truth.run import build_server, truth_server
from infra.models.models import prepare_model

MOST_STREAMS_WHEN_SLOW = 1000
START_S, SLOWEST = 120.0, 8.0  # allowed start time, and allowed multiple of the load's own time
LATE_MS = 5.0  # a server later than this at p99 makes the run say little about its client
REASONS = (UnavailableError, UnreadableError, UnreadableResultError, ClientFailedError, CalibrationError)


@dataclass(frozen=True)
class ClientSetup:
    """What every run needs: server, tokenizer, and each client's program or the reason why it is missing."""

    server: Path
    tokenizer: Path
    programs: dict[str, Path | str]
    scratch: Path


def prepare(clients: Sequence[Client], cache: Path, scratch: Path) -> ClientSetup:
    """Build and install everything, so that nothing is installed during a measurement."""
    _most_files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # not every client raises the limit itself
    tokenizer = prepare_model("generated:tiny?seed=0", scratch / "models", say).path
    programs: dict[str, Path | str] = {}
    for client in clients:
        try:
            programs[client.name] = client.install(cache, say)
        except UnavailableError as error:
            programs[client.name] = f"could not be installed: {error}"
    return ClientSetup(build_server(cache), tokenizer, programs, scratch)


def say(line: str) -> None:
    """Print progress to stderr; the table goes to stdout."""
    print(line, file=sys.stderr, flush=True)


def run_client(setup: ClientSetup, client: Client, cell: LoadCell, repeat: int, place: int) -> Run:
    """Run one client in one cell; a failure is the reason of this run only."""
    began = time.monotonic()
    rows: dict[str, Numbers] = {}
    remark = reason = None
    try:
        rows, remark = measure(setup, client, cell)
    except REASONS as error:
        reason = str(error)
    return Run(
        client=client.name,
        streams=cell.streams,
        ttft_ms=cell.ttft_ms,
        itl_ms=cell.itl_ms,
        output_tokens=cell.output_tokens,
        repeat=repeat,
        place=place,
        wall_s=time.monotonic() - began,
        rows=rows,
        remark=remark,
        reason=reason,
    )


def measure(setup: ClientSetup, client: Client, cell: LoadCell) -> tuple[dict[str, Numbers], str | None]:
    """Drive the cell and compare; raises the errors of client and server."""
    program = setup.programs[client.name]
    if isinstance(program, str):
        raise UnavailableError(program)
    if client.is_slow and cell.streams > MOST_STREAMS_WHEN_SLOW:
        raise UnavailableError(f"not run above {MOST_STREAMS_WHEN_SLOW:,} streams")
    on_server, on_client = two_cores()
    warmup = cell.streams if client.has_warmup else 0
    with tempfile.TemporaryDirectory(dir=setup.scratch) as name:
        folder = Path(name)
        with truth_server(setup.server, folder / "truth.log", server_options(cell), on_server) as port:
            argv = client.command(program, ClientTask(cell, warmup, port, setup.tokenizer, folder))
            cpu = run_tree(argv, client.full_environment(), on_client, timeout_s(cell), folder)
        truth = read_truth((folder / "truth.log").read_bytes())
        series = client.read(folder)
    rows = {row: compare(cell, truth, report, cpu) for row, report in series.items()}
    return rows, remark_on(cell, truth, cpu, warmup)


def timeout_s(cell: LoadCell) -> float:
    """Seconds after which a client is killed."""
    rounds = cell.request_count / cell.streams + 1
    return START_S + SLOWEST * rounds * answer_ms(cell) / 1e3


def answer_ms(cell: LoadCell) -> float:
    """Milliseconds of a response if client and server lose no time."""
    return cell.ttft_ms + (cell.output_tokens - 1) * cell.itl_ms


def remark_on(cell: LoadCell, truth: Truth, cpu: CpuWatch, warmup: int) -> str | None:
    """Problems of a run: a wrong number of requests, processes on other cores, a late server."""
    remarks = []
    if len(truth.ids) != cell.request_count + warmup:
        remarks.append(f"the server received {len(truth.ids)} requests instead of {cell.request_count + warmup}")
    if len(cpu.cores) > 1:
        remarks.append(f"its processes could use {len(cpu.cores)} cores")
    if nearest_rank(truth.late_ns / 1e6, 0.99) > LATE_MS:
        remarks.append(f"the server was late by more than {LATE_MS:g} ms at p99")
    return "; ".join(remarks) or None


def compare(cell: LoadCell, truth: Truth, report: ClientReport, cpu: CpuWatch) -> Numbers:
    """The client's values of its measured requests minus the true ones; CPU and load are of the whole run.

    Raises UnreadableError if it reports no token.
    """
    if len(report.ttft_ms) == 0 or len(report.itl_ms) == 0:
        raise UnreadableError(f"it reports no token; {report.failed} requests failed")
    measured = np.arange(len(truth.ids))[-cell.request_count :]
    real = at_places(truth, measured) if report.ids is None else select(truth, report.ids)
    begin, end = middle_of(real)
    first, last = float(truth.arrived_ns.min()), float(truth.ended_ns.max())
    wall_s, cpu_s = (last - first) / 1e9, cpu.between(first, last)
    live = mean_live(truth, begin, end)
    return Numbers(
        ttft_mean_error_ms=float(report.ttft_ms.mean() - real.ttft_ms.mean()),
        ttft_p99_error_ms=nearest_rank(report.ttft_ms, 0.99) - nearest_rank(real.ttft_ms, 0.99),
        itl_p50_error_ms=nearest_rank(report.itl_ms, 0.5) - nearest_rank(real.gaps_ms, 0.5),
        itl_p99_error_ms=nearest_rank(report.itl_ms, 0.99) - nearest_rank(real.gaps_ms, 0.99),
        itl_metric=report.itl_metric,
        live_streams=live,
        live_by_client=report.live_streams,
        load_share=live / cell.streams * answer_ms(cell) / mean_answer_ms(real),
        cpu_us_per_token=None if cpu_s is None else cpu_s / float(truth.tokens.sum()) * 1e6,
        core_share=None if cpu_s is None else cpu_s / wall_s,
        server_late_p99_ms=nearest_rank(truth.late_ns / 1e6, 0.99),
        server_core_share=truth.cpu_s / wall_s,
        true_ttft_mean_ms=float(real.ttft_ms.mean()),
        true_itl_p99_ms=nearest_rank(real.gaps_ms, 0.99),
        ok=report.ok,
        failed=report.failed,
    )


def mean_answer_ms(real: ClientTimes) -> float:
    """Mean milliseconds of a response, from arrival to the last write."""
    has = np.diff(real.at) > 0
    return float((real.event_ns[real.at[1:][has] - 1] - real.send_ns[has]).mean()) / 1e6
