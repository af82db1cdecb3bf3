"""How far load clients are from the truth, and what a token costs them: the meter beside `vllm bench serve`.

`python -m benchmarks.client_error [--streams 100,500,1000]`. Every client drives the same cell against the same truth
server, one after another, pinned to the same core; the server has another. An error is what the client reports minus
what the server wrote in that very run. CPU is of the client's whole process tree, from the first request to the last
token.
"""

import argparse
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from bench.calibration import Cell
from bench.load import read_meter, read_vllm_bench
from bench.metrics import Floats, Requests
from bench.truth import Truth, at_places, mean_live, middle_of, nearest_rank, read_truth, tokens_between
from infra.calibration import cells, meter_command, server_options, two_cores
from infra.engine_env import LOCK, ensure_engine
from infra.models import prepare_model
from infra.settings import Settings
from infra.truth.run import build_server, pin, truth_server

SAMPLE_S = 0.05
BARS = {"ttft_mean_error_ms": 1.0, "itl_p99_error_ms": 0.05, "cpu_us_per_token": 12.0}


@dataclass(frozen=True)
class Client:
    """A load client: its command for a cell, and its own report of it."""

    name: str
    command: Callable[[Cell, int, Path], tuple[str, ...]]
    read: Callable[[Path], Requests]


@dataclass
class CpuWatch:
    """The CPU seconds of a process tree, sampled while it runs."""

    pid: int
    at_ns: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample until told that it is over."""
        known: dict[int, float] = {}  # a child that has ended keeps what it had used
        while not self.is_over.wait(SAMPLE_S):
            try:
                root = psutil.Process(self.pid)
                for process in (root, *root.children(recursive=True)):
                    used = process.cpu_times()
                    known[process.pid] = used.user + used.system
            except psutil.Error:
                continue
            self.at_ns.append(time.monotonic_ns())
            self.cpu_s.append(sum(known.values()))

    def between(self, begin_ns: float, end_ns: float) -> float:
        """CPU seconds between two moments, interpolated."""
        at = np.array(self.at_ns, dtype=np.float64)
        return float(np.interp(end_ns, at, self.cpu_s) - np.interp(begin_ns, at, self.cpu_s))


def measure(client: Client, cell: Cell, server: Path, work: Path) -> dict[str, float]:
    """Run one client in one cell and compare its report with the truth."""
    on_server, on_client = two_cores()
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    with truth_server(server, work / "truth.log", server_options(cell), on_server) as port:
        argv = client.command(cell, port, work)
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=quiet) as process:
            pin(process.pid, on_client)
            cpu = CpuWatch(process.pid)
            watcher = threading.Thread(target=cpu.watch, daemon=True)
            watcher.start()
            _out, said = process.communicate()
            cpu.is_over.set()
            watcher.join()
        if process.returncode != 0:
            raise SystemExit(f"{client.name} ended with {process.returncode}: {said.decode()[-1500:]}")
    return compare(cell, read_truth((work / "truth.log").read_bytes()), client.read(work), cpu)


def compare(cell: Cell, truth: Truth, said: Requests, cpu: CpuWatch) -> dict[str, float]:
    """What the client reports of its measured requests, minus the truth of the last that arrived."""
    real = at_places(truth, np.arange(len(truth.ids))[-cell.request_count :])
    begin, end = middle_of(real)
    first, last = float(truth.arrived_ns.min()), float(truth.ended_ns.max())
    ttft_ms, gaps_ms = said.ttft_s * 1e3, said.ok_gap_s * 1e3
    return {
        "ttft_mean_error_ms": float(np.nanmean(ttft_ms) - real.ttft_ms.mean()),
        "itl_p50_error_ms": _error(gaps_ms, real.gaps_ms, 0.5),
        "itl_p99_error_ms": _error(gaps_ms, real.gaps_ms, 0.99),
        "live": mean_live(truth, begin, end),
        "load_share": tokens_between(truth, begin, end) / ((end - begin) / 1e9) / cell.offered_tok_per_s,
        "cpu_us_per_token": cpu.between(first, last) / float(truth.tokens.sum()) * 1e6,
        "server_late_p99_ms": nearest_rank(truth.late_ns / 1e6, 0.99),
    }


def _error(said: Floats, real: Floats, share: float) -> float:
    return nearest_rank(said, share) - nearest_rank(real, share)


def clients(cache: Path, work: Path) -> list[Client]:
    """The meter, and vLLM's client from the engine's own environment, built if need be."""
    vllm = ensure_engine(LOCK, cache, print).vllm
    model = prepare_model("generated:tiny?seed=0", work / "models", print).path

    def vllm_command(cell: Cell, port: int, folder: Path) -> tuple[str, ...]:
        return (
            *(str(vllm), "bench", "serve", "--backend", "openai", "--base-url", f"http://127.0.0.1:{port}"),
            *("--endpoint", "/v1/completions", "--model", "truth", "--tokenizer", str(model)),
            *("--dataset-name", "random", "--random-input-len", "64", "--random-output-len", str(cell.output_tokens)),
            *("--num-prompts", str(cell.request_count), "--max-concurrency", str(cell.streams), "--ignore-eos"),
            *("--ready-check-timeout-sec", "0", "--disable-tqdm", "--save-result", "--save-detailed"),
            *("--result-dir", str(folder), "--result-filename", "result.json"),
        )

    def read_meter_report(folder: Path) -> Requests:
        names = ("meter.json", "requests.jsonl", "events.bin")
        return read_meter(*((folder / "load" / name).read_bytes() for name in names)).requests

    def read_vllm_report(folder: Path) -> Requests:
        return read_vllm_bench((folder / "result.json").read_bytes()).requests

    return [Client("meter", meter_command, read_meter_report), Client("vllm bench", vllm_command, read_vllm_report)]


def main(argv: list[str] | None = None) -> None:
    """Print each client's error and cost, and the peer's over the meter's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", default="100,500,1000")
    asked = parser.parse_args(argv)
    cache = Settings().cache
    server = build_server(cache)
    with tempfile.TemporaryDirectory(prefix="nightbench-clients-") as name:
        peers = clients(cache, Path(name))
        for cell in cells([int(part) for part in asked.streams.split(",")], 200.0, 20.0):
            found = {}
            for client in peers:
                work = Path(name) / f"{client.name.replace(' ', '-')}-{cell.streams}"
                work.mkdir()
                found[client.name] = measure(client, cell, server, work)
                print_row(cell, client.name, found[client.name])
            print_ratios(found["meter"], found["vllm bench"])
    print("bars for the meter at 1,000 streams: " + ", ".join(f"{name} <= {bar:g}" for name, bar in BARS.items()))


def print_row(cell: Cell, name: str, found: dict[str, float]) -> None:
    """One client in one cell."""
    print(
        f"{cell.streams:5} streams  {name:11} " + "  ".join(f"{key} {value:.4g}" for key, value in found.items()),
        flush=True,
    )


def print_ratios(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """The peer's error and cost over the meter's."""
    ratios = (f"{key} {abs(theirs[key]) / max(abs(ours[key]), 1e-6):,.1f} x" for key in BARS)
    print(f"{'':15}vllm bench / meter: " + "  ".join(ratios), flush=True)


if __name__ == "__main__":
    main()
