"""One client in one cell: driven, watched, and held against what the server wrote."""

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
from benchmarks.clients.client import Asked, Client, Said, UnavailableError, UnreadableError
from benchmarks.process_tree import ClientFailedError, CpuWatch, run_tree
from infra.hardware.cpu_affinity import two_cores
from infra.loadgen.calibration import server_options
from infra.loadgen.truth.run import build_server, truth_server
from infra.models.models import prepare_model
from infra.settings import Settings

MOST_STREAMS_WHEN_SLOW = 1000
START_S, SLOWEST = 120.0, 8.0  # a client may take so long to start, and so many times what the load itself takes
LATE_MS = 5.0  # by which the server may be late at p99 before a run says little of its client
REASONS = (UnavailableError, UnreadableError, UnreadableResultError, ClientFailedError, CalibrationError)


@dataclass(frozen=True)
class Bench:
    """What every run needs: the server, the tokenizer, each client's program or the reason why there is none."""

    server: Path
    tokenizer: Path
    programs: dict[str, Path | str]
    scratch: Path


def prepare(clients: Sequence[Client], scratch: Path) -> Bench:
    """Build and install everything first, so that nothing is installed while something is measured."""
    _most_files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # not every client asks for more itself
    cache = Settings().cache.absolute()
    tokenizer = prepare_model("generated:tiny?seed=0", scratch / "models", say).path
    programs: dict[str, Path | str] = {}
    for client in clients:
        try:
            programs[client.name] = client.install(cache, say)
        except UnavailableError as error:
            programs[client.name] = f"cannot be installed: {error}"
    return Bench(build_server(cache), tokenizer, programs, scratch)


def say(line: str) -> None:
    """Tell progress, apart from the table."""
    print(line, file=sys.stderr, flush=True)


def run_client(bench: Bench, client: Client, cell: LoadCell, repeat: int, place: int) -> Run:
    """Run one client in one cell; whatever goes wrong is its reason, and nobody else's."""
    began = time.monotonic()
    rows: dict[str, Numbers] = {}
    remark = reason = None
    try:
        rows, remark = measure(bench, client, cell)
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


def measure(bench: Bench, client: Client, cell: LoadCell) -> tuple[dict[str, Numbers], str | None]:
    """Drive the cell and compare; raises the client's or the server's own error."""
    program = bench.programs[client.name]
    if isinstance(program, str):
        raise UnavailableError(program)
    if client.is_slow and cell.streams > MOST_STREAMS_WHEN_SLOW:
        raise UnavailableError(f"not run above {MOST_STREAMS_WHEN_SLOW:,} streams")
    on_server, on_client = two_cores()
    warmup = cell.streams if client.has_warmup else 0
    with tempfile.TemporaryDirectory(dir=bench.scratch) as name:
        folder = Path(name)
        with truth_server(bench.server, folder / "truth.log", server_options(cell), on_server) as port:
            argv = client.command(program, Asked(cell, warmup, port, bench.tokenizer, folder))
            cpu = run_tree(argv, client.surroundings(), on_client, timeout_s(cell), folder)
        truth = read_truth((folder / "truth.log").read_bytes())
        series = client.read(folder)
    return {row: compare(cell, truth, said, cpu) for row, said in series.items()}, remark_on(cell, truth, cpu, warmup)


def timeout_s(cell: LoadCell) -> float:
    """How long a client may take before it is ended."""
    rounds = cell.request_count / cell.streams + 1
    return START_S + SLOWEST * rounds * answer_ms(cell) / 1e3


def answer_ms(cell: LoadCell) -> float:
    """How long an answer takes when everybody is in time."""
    return cell.ttft_ms + (cell.output_tokens - 1) * cell.itl_ms


def remark_on(cell: LoadCell, truth: Truth, cpu: CpuWatch, warmup: int) -> str | None:
    """What is odd about a run: other requests than asked, processes that left their core, a server that was late."""
    remarks = []
    if len(truth.ids) != cell.request_count + warmup:
        remarks.append(f"the server saw {len(truth.ids)} requests, {cell.request_count + warmup} were asked for")
    if len(cpu.cores) > 1:
        remarks.append(f"its processes could run on {len(cpu.cores)} cores")
    if nearest_rank(truth.late_ns / 1e6, 0.99) > LATE_MS:
        remarks.append(f"the server itself was late, by more than {LATE_MS:g} ms at p99")
    return "; ".join(remarks) or None


def compare(cell: LoadCell, truth: Truth, said: Said, cpu: CpuWatch) -> Numbers:
    """What the client reports of its measured requests, minus the truth of these; CPU and load are of the whole run.

    Raises UnreadableError where it reports no token at all.
    """
    if len(said.ttft_ms) == 0 or len(said.itl_ms) == 0:
        raise UnreadableError(f"it reports no token; {said.failed} requests failed")
    measured = np.arange(len(truth.ids))[-cell.request_count :]
    real = at_places(truth, measured) if said.ids is None else select(truth, said.ids)
    begin, end = middle_of(real)
    first, last = float(truth.arrived_ns.min()), float(truth.ended_ns.max())
    wall_s, cpu_s = (last - first) / 1e9, cpu.between(first, last)
    live = mean_live(truth, begin, end)
    return Numbers(
        ttft_mean_error_ms=float(said.ttft_ms.mean() - real.ttft_ms.mean()),
        ttft_p99_error_ms=nearest_rank(said.ttft_ms, 0.99) - nearest_rank(real.ttft_ms, 0.99),
        itl_p50_error_ms=nearest_rank(said.itl_ms, 0.5) - nearest_rank(real.gaps_ms, 0.5),
        itl_p99_error_ms=nearest_rank(said.itl_ms, 0.99) - nearest_rank(real.gaps_ms, 0.99),
        itl_metric=said.itl_metric,
        live_streams=live,
        live_by_client=said.live_streams,
        load_share=live / cell.streams * answer_ms(cell) / mean_answer_ms(real),
        cpu_us_per_token=None if cpu_s is None else cpu_s / float(truth.tokens.sum()) * 1e6,
        core_share=None if cpu_s is None else cpu_s / wall_s,
        server_late_p99_ms=nearest_rank(truth.late_ns / 1e6, 0.99),
        server_core_share=truth.cpu_s / wall_s,
        true_ttft_mean_ms=float(real.ttft_ms.mean()),
        true_itl_p99_ms=nearest_rank(real.gaps_ms, 0.99),
        ok=said.ok,
        failed=said.failed,
    )


def mean_answer_ms(real: ClientTimes) -> float:
    """How long the answers took, from arrival to the last write."""
    has = np.diff(real.at) > 0
    return float((real.event_ns[real.at[1:][has] - 1] - real.send_ns[has]).mean()) / 1e6
