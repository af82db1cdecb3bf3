"""The meter's error while it replays a trace and while it keeps sessions open, against a server of known times.

`python -m benchmarks.replay_error`. Each load has 1,000 requests of 50 tokens, about 100 of them in flight. An error is
the meter's value by kernel stamps less the server's in the same run; lateness is from due to sent.
"""

import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.client_error.calibration import read_report
from bench.client_error.truth import nearest_rank, read_truth, select
from bench.loadgen.drivers.meter import METER_PLAN_VERSION, replay_requests
from bench.suite.traces.formats import READERS
from bench.suite.traces.window import Replayed, Window, replayed
from benchmarks.bars import Bar, Benchmark, Measured, NotMeasuredError
from benchmarks.client_result import FLOOR_MS
from infra.hardware.cpu_affinity import run_on, split_cores
from infra.loadgen.calibration import write_meter
from infra.loadgen.client_address import HERE
from infra.loadgen.truth.run import build_server, truth_server
from infra.settings import Settings

REQUESTS, OUTPUT_TOKENS, SESSIONS, TURNS = 1000, 50, 100, 5
TTFT_US, ITL_US = 100_000, 20_000
PATIENCE_S = 300.0
LOADS = ("trace", "sessions")
BARS = tuple(
    bar
    for load in LOADS
    for bar in (
        Bar(
            f"replay_error.{load}_gap_p99_error_ms", f"p99 of gaps by kernel stamps, {load}", "ms", 0.05, floor=FLOOR_MS
        ),
        Bar(
            f"replay_error.{load}_ttft_mean_error_ms", f"mean TTFT by kernel stamps, {load}", "ms", 1.0, floor=FLOOR_MS
        ),
        Bar(f"replay_error.{load}_late_p99_ms", f"p99 from due to sent, {load}", "ms", 10.0),
    )
)


def trace_lines() -> Iterator[str]:
    """A trace in Mooncake's form: 100 requests a second in seven families that share their first block."""
    draw, at_ms = random.Random(7), 0  # noqa: S311 -- load, not secrets
    for number in range(REQUESTS):
        row = {"timestamp": at_ms, "input_length": 512 + draw.randrange(1, 200), "output_length": OUTPUT_TOKENS}
        yield json.dumps({**row, "hash_ids": [draw.randrange(7), 10 + number]}) + "\n"
        at_ms += draw.randrange(0, 21)


def session_lines() -> Iterator[str]:
    """Sessions of five turns with pauses of up to 0.2 s, in aiperf's form."""
    draw = random.Random(8)  # noqa: S311 -- load, not secrets
    for number in range(REQUESTS):
        session, turn = divmod(number, TURNS)
        when = {"timestamp": session} if turn == 0 else {"delay": draw.randrange(0, 200)}
        row = {"session_id": f"s{session}", **when, "input_length": draw.randrange(20, 100)}
        yield json.dumps({**row, "output_length": OUTPUT_TOKENS}) + "\n"


def recorded(load: str, lines: Sequence[str] = ()) -> tuple[Replayed, ...]:
    """The requests of a load, or of these lines of a trace."""
    own = lines or [*(trace_lines() if load == "trace" else session_lines())]
    return replayed(READERS["aiperf"](iter(own), load), load, Window(len(own), isl=4096, osl=OUTPUT_TOKENS))


def plan(load: str, port: int, lines: Sequence[str] = ()) -> dict[str, Any]:
    """The meter's plan of a load, or of these lines of a trace."""
    requests = recorded(load, lines)
    ids = {"token_low": 264, "token_high": 10240, "seed": 1}
    drive = {"arrivals_s": [one.at_s for one in requests]} if load == "trace" else {"concurrency": SESSIONS}
    return {
        "meter_plan_version": METER_PLAN_VERSION,
        "url": f"http://{HERE}:{port}",
        "path": "/v1/completions",
        "model": "truth",
        "load": {"kind": load, **drive},
        "prompts": {"kind": "replay", "input_tokens": 4096, **ids, "requests": replay_requests(requests)},
        "output_tokens": OUTPUT_TOKENS,
        "request_count": len(requests),
        "warmup_count": 0,
        "timeout_s": 60.0,
        "workers": 1,
        "kernel_stamps": True,
        "extra_body": {"ignore_eos": True, "return_token_ids": True},
    }


def errors(load: str, server: Path, work: Path) -> dict[str, Measured]:
    """Run a load and compare it with the server's log."""
    on_server, on_client = split_cores(1)
    options = ("--ttft-us", str(TTFT_US), "--itl-us", str(ITL_US))
    with truth_server(server, work / "truth.log", options, on_server) as port:
        code, err = run_on(write_meter(plan(load, port), work), on_client, PATIENCE_S)
    if code != 0:
        raise NotMeasuredError(f"the meter failed with exit code {code}: {err}")
    report = read_report(
        *((work / "load" / name).read_bytes() for name in ("meter.json", "requests.jsonl", "events.bin"))
    )
    if report.kernel is None or report.ok != REQUESTS:
        raise NotMeasuredError(f"{report.ok} of {REQUESTS} requests were answered with kernel stamps")
    real = select(read_truth((work / "truth.log").read_bytes()), report.kernel.ids)
    found = {
        "gap_p99_error_ms": abs(nearest_rank(report.kernel.gaps_ms, 0.99) - nearest_rank(real.gaps_ms, 0.99)),
        "ttft_mean_error_ms": abs(float(report.kernel.ttft_ms.mean() - real.ttft_ms.mean())),
        "late_p99_ms": float(report.client["dispatch_delay_p99_ms"]),
    }
    return {f"replay_error.{load}_{name}": Measured(value) for name, value in found.items()}


def measure() -> Mapping[str, Measured]:
    """Both loads, one after another."""
    found: dict[str, Measured] = {}
    server = build_server(Settings().cache.absolute())
    for load in LOADS:
        with tempfile.TemporaryDirectory(prefix="nightbench-replay-") as name:
            found |= errors(load, server, Path(name))
    return found


BENCHMARK = Benchmark("replay_error", BARS, measure, is_slow=False)

if __name__ == "__main__":
    for bar_name, one in measure().items():
        sys.stdout.write(f"{bar_name:42} {one.value:.4f} ms\n")
