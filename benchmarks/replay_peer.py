"""One Mooncake trace through aiperf and through the meter, each against a server of known times.

`python -m benchmarks.replay_peer [--requests N]`. An error is the client's value less the server's in the same run; the
meter's is by kernel stamps. Late is how long after its time in the trace a request arrived at the server, p99, counted
from the first one.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from bench.client_error.truth import Truth, at_places, nearest_rank, read_truth
from bench.metrics import Floats
from benchmarks import replay_error
from benchmarks.clients import aiperf, meter
from benchmarks.clients.client import OFFLINE, ClientReport
from benchmarks.process_tree import run_tree
from infra.hardware.cpu_affinity import two_cores
from infra.loadgen.calibration import write_meter
from infra.loadgen.truth.run import build_server, truth_server
from infra.models.models import prepare_model
from infra.settings import Settings

TIMEOUT_S = 300.0
TOKENIZER = "nightbench/tiny"  # aiperf's processes refuse a local folder, and read the cache of a hub
OPTIONS = ("--ttft-us", str(replay_error.TTFT_US), "--itl-us", str(replay_error.ITL_US))


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each client."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay_peer", description=__doc__)
    parser.add_argument("--requests", type=int, default=replay_error.REQUESTS)
    count = parser.parse_args(argv).requests
    cache = Settings().cache.absolute()
    server, lines = build_server(cache), list(islice(replay_error.trace_lines(), count))
    with tempfile.TemporaryDirectory(prefix="nightbench-peer-") as name:
        scratch = Path(name)
        trace = scratch / "trace.jsonl"
        trace.write_text("".join(lines))
        program = aiperf.install(cache, say)
        hub = hub_cache(prepare_model("generated:tiny?seed=0", scratch / "models", say).path, scratch / "hub")
        due_s = np.array([json.loads(line)["timestamp"] for line in lines]) / 1e3
        for client in ("aiperf", "meter"):
            folder = scratch / client
            folder.mkdir()
            on_server, on_client = two_cores()
            with truth_server(server, folder / "truth.log", OPTIONS, on_server) as port:
                command = (
                    aiperf_command(program, trace, folder, port)
                    if client == "aiperf"
                    else write_meter(replay_error.plan("trace", port, lines), folder)
                )
                run_tree(
                    command,
                    {**aiperf.CLIENT.full_environment(), **OFFLINE, "HF_HOME": str(hub)},
                    on_client,
                    TIMEOUT_S,
                    folder,
                )
            series = (aiperf.read if client == "aiperf" else meter.read)(folder)
            truth = read_truth((folder / "truth.log").read_bytes())
            sys.stdout.write(line_of(client, next(iter(series.values())), truth, due_s) + "\n")


def say(line: str) -> None:
    """Print progress to stderr."""
    print(line, file=sys.stderr, flush=True)


def hub_cache(model: Path, home: Path) -> Path:
    """A hub's cache that has this model's tokenizer under the name TOKENIZER."""
    place = home / "hub" / f"models--{TOKENIZER.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    ignored = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(model, place / "snapshots" / ("0" * 40), ignore=ignored)
    return home


def aiperf_command(program: Path, trace: Path, folder: Path, port: int) -> tuple[str, ...]:
    """Its replay of a Mooncake trace at the recorded times."""
    return (
        *(str(program), "-m", "aiperf", "profile", "-m", "truth", "--url", f"http://127.0.0.1:{port}", "--streaming"),
        *("--endpoint-type", "completions", "--tokenizer", TOKENIZER, "--use-server-token-count"),
        *("--input-file", str(trace), "--custom-dataset-type", "mooncake_trace", "--fixed-schedule"),
        *("--extra-inputs", "ignore_eos:true", "--no-server-metrics", "--no-gpu-telemetry", "--ui", "none"),
        *("--output-artifact-dir", str(folder / aiperf.FOLDER)),
    )


def line_of(name: str, report: ClientReport, truth: Truth, due_s: Floats) -> str:
    """The errors of a client, in milliseconds."""
    real = at_places(truth, np.arange(len(truth.ids)))
    arrived_ms = np.sort(truth.arrived_ns - truth.arrived_ns.min()) / 1e6
    late_ms = arrived_ms - np.sort(due_s - due_s.min())[: len(arrived_ms)] * 1e3
    numbers = {
        "ok": report.ok,
        "mean TTFT": float(report.ttft_ms.mean() - real.ttft_ms.mean()),
        "p99 gap": nearest_rank(report.itl_ms, 0.99) - nearest_rank(real.gaps_ms, 0.99),
        "p99 late": nearest_rank(late_ms, 0.99),
    }
    return f"{name:8}" + ", ".join(f"{what} {value:+.4g}" for what, value in numbers.items())


if __name__ == "__main__":
    main()
