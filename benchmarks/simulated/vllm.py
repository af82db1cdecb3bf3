"""Writers of the files of `vllm bench` and of InferenceX, which began as a copy of its client."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.metrics import Floats
from benchmarks.simulated.engine import Setup
from benchmarks.simulated.runs import DURATION_MIN_S, Load, SimulatedRun, run

Files = dict[str, str]
EVENTS_MAX = 40_000  # of a detailed file
ITERATIONS = 12


def model_name(setup: Setup) -> str:
    """The checkpoint's name as its maker writes it."""
    return f"{setup.model.maker}/{setup.model.model}{'-FP8' if setup.precision == 'fp8' else ''}"


def serve(runs: Sequence[SimulatedRun]) -> Files:
    """A file for each run; every other one detailed, and with the machine as metadata."""
    files = {}
    for at, each in enumerate(runs):
        found = summary(each)
        if at % 2:
            found = {**_machine(each.setup), **found}
        files[f"run-{at}.json"] = json.dumps({**found, **(_arrays(each) if at % 2 else {})})
    return files


def appended(runs: Sequence[SimulatedRun]) -> Files:
    """`--append-result`: a line for each run."""
    return {"all.jsonl": "".join(f"{json.dumps(summary(each))}\n" for each in runs)}


def rust(runs: Sequence[SimulatedRun]) -> Files:
    """The client in Rust."""
    files = {}
    for at, each in enumerate(runs):
        more = {
            "date": datetime.fromtimestamp(each.started_at_s + each.duration_s, UTC).isoformat(),
            "max_model_len": 8192,
            "input_throughput": each.tokens_in / _duration_s(each),
            "failed_requests": [{"index": int(one), "error": "HTTP 500"} for one in np.flatnonzero(~each.is_ok)],
            "steady_state": None,
        }
        files[f"run-{at}.json"] = json.dumps({**summary(each), **more})
    return files


def sweep(runs: Sequence[SimulatedRun]) -> Files:
    """`vllm bench sweep serve`: all runs as JSON and again as CSV."""
    rows = [{**summary(each), "run_number": 0} for each in runs]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *rows[0]])
    writer.writerows([at, *("" if cell is None else cell for cell in row.values())] for at, row in enumerate(rows))
    return {"summary.csv": out.getvalue()}


def throughput(runs: Sequence[SimulatedRun]) -> Files:
    """`vllm bench throughput`: all requests at once, by several counts."""
    files = {}
    for at, each in enumerate(runs):
        one = long_enough(each, requests=100 * 2**at)
        tokens = one.tokens_in + one.tokens_out
        found = {
            "elapsed_time": one.duration_s,
            "num_requests": len(one.is_ok),
            "total_num_tokens": tokens,
            "requests_per_second": len(one.is_ok) / one.duration_s,
            "tokens_per_second": tokens / one.duration_s,
        }
        files[f"throughput-{at}.json"] = json.dumps({"model_id": model_name(each.setup), **found})
    return files


def latency(runs: Sequence[SimulatedRun]) -> Files:
    """`vllm bench latency`: one batch again and again."""
    files = {}
    for at, each in enumerate(runs):
        took = batch_s(each, 2**at)
        took = np.tile(took, ceil(DURATION_MIN_S / took.sum()))
        found = {
            "model_id": model_name(each.setup),
            "avg_latency": float(took.mean()),
            "latencies": took.tolist(),
            "percentiles": {str(q): float(np.percentile(took, q)) for q in (10, 25, 50, 75, 90, 99)},
        }
        files[f"latency-{at}.json"] = json.dumps(found)
    return files


def batch_s(each: SimulatedRun, size: int) -> Floats:
    """The times of a whole batch, as often as it is repeated."""
    return np.array([offline(each, size, again).duration_s for again in range(ITERATIONS)])


def long_enough(each: SimulatedRun, requests: int) -> SimulatedRun:
    """All requests at once, and so many more that it lasts."""
    found = offline(each, requests)
    return found if found.duration_s >= DURATION_MIN_S else long_enough(each, 4 * requests)


def offline(each: SimulatedRun, requests: int, again: int = 0) -> SimulatedRun:
    """All requests at once, with nothing on the way."""
    load = Load(drive="batch", requests=requests, isl=each.load.isl, osl=each.load.osl, round_trip_s=0.0)
    return run(each.setup, load, each.seed + again, each.started_at_s)


def inferencex_raw(runs: Sequence[SimulatedRun]) -> Files:
    """The older client: the clock at both ends, and a colon in one key."""
    files = {}
    for at, each in enumerate(runs):
        older = {key: value for key, value in summary(each).items() if key not in ("label", "endpoint_type", "failed")}
        more = {
            "backend": "vllm",
            "benchmark_start_time_unix": each.started_at_s,
            "benchmark_end_time_unix": each.started_at_s + _duration_s(each),
            "request_goodput:": None,
        }
        files[f"raw-{at}.json"] = json.dumps({**older, **more})
    return files


def inferencex_agg(runs: Sequence[SimulatedRun]) -> Files:
    """Rows by GPU, latencies in seconds; ten requests for each one in flight, or more."""
    closed = [each for each in runs if each.load.requests >= 10 * (each.load.concurrency or np.inf)]
    return {f"agg_{at}.json": json.dumps(_aggregate(each)) for at, each in enumerate(closed)}


def summary(each: SimulatedRun) -> dict[str, Any]:
    """What the client writes of every run."""
    load, took = each.load, _duration_s(each)
    per_s, running = _by_second(each)
    return {
        "date": datetime.fromtimestamp(each.started_at_s + took, UTC).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": model_name(each.setup),
        "tokenizer_id": model_name(each.setup),
        "num_prompts": len(each.is_ok),
        "request_rate": load.rate_per_s or "inf",
        "burstiness": 1.0,
        "max_concurrency": load.concurrency,
        "duration": took,
        "completed": each.completed,
        "failed": each.failed,
        "total_input_tokens": each.tokens_in,
        "total_output_tokens": each.tokens_out,
        "request_throughput": each.completed / took,
        "request_goodput": None,
        "output_throughput": each.tokens_out / took,
        "total_token_throughput": (each.tokens_in + each.tokens_out) / took,
        "max_output_tokens_per_s": per_s,
        "max_concurrent_requests": running,
        "rtfx": 0.0,
        **_statistics("ttft", each.good(each.ttft_s)),
        **_statistics("tpot", each.good(each.tpot_s)),
        **_statistics("itl", np.concatenate(each.gaps_s)),
        **_statistics("e2el", each.good(each.e2el_s)),
    }


def _duration_s(each: SimulatedRun) -> float:
    """Its clock runs from before the first request is made until all answers are gathered."""
    return each.duration_s + 0.002


def _statistics(metric: str, values: npt.ArrayLike) -> dict[str, float]:
    """In milliseconds; zeros where there is no value, as for gaps of answers of one token."""
    found = np.asarray(values, dtype=np.float64) * 1e3
    found = found if len(found) else np.zeros(1)
    shown = {"mean": found.mean(), "median": np.median(found), "std": found.std()}
    shown |= {f"p{q}": np.percentile(found, q) for q in (50, 90, 99)}
    return {f"{statistic}_{metric}_ms": float(value) for statistic, value in shown.items()}


def _by_second(each: SimulatedRun) -> tuple[float, int]:
    """The most tokens of a second, counted by events, and the most requests that touch one."""
    events = np.concatenate(each.event_s).astype(np.int64)
    touched = np.zeros(int(each.end_s.max()) + 2, dtype=np.int64)
    np.add.at(touched, each.start_s.astype(np.int64), 1)
    np.add.at(touched, each.end_s.astype(np.int64) + 1, -1)
    return float(np.bincount(events).max()), int(touched.cumsum().max())


def _arrays(each: SimulatedRun) -> dict[str, Any]:
    """`--save-detailed`, unless too large; a failed request has a TTFT of 0 and an error."""
    if sum(map(len, each.event_s)) > EVENTS_MAX:
        return {}
    return {
        "input_lens": each.input_tokens.tolist(),
        "output_lens": each.output_tokens.tolist(),
        "ttfts": np.nan_to_num(each.ttft_s).tolist(),
        "itls": [gaps.tolist() for gaps in each.gaps_s],
        "start_times": (each.start_s + 5000.0).tolist(),
        "generated_texts": [""] * len(each.is_ok),
        "errors": ["" if good else "Internal Server Error" for good in each.is_ok],
    }


def _machine(setup: Setup) -> dict[str, Any]:
    """`--metadata`: text, whatever it is."""
    return {
        "gpu": setup.gpu.gpu,
        "gpu_count": str(setup.tp_size),
        "tensor_parallel_size": str(setup.tp_size),
        "dtype": setup.precision,
    }


def _aggregate(each: SimulatedRun) -> dict[str, Any]:
    setup, load = each.setup, each.load
    rates = {name: count / each.duration_s / setup.tp_size for name, count in _tokens(each).items()}
    row: dict[str, Any] = {
        "hw": setup.gpu.gpu.lower(),
        "conc": load.concurrency,
        "image": "example/engine:v0.20.1",
        "model": model_name(setup),
        "infmax_model_prefix": "m",
        "framework": "vllm",
        "precision": setup.precision,
        "spec_decoding": "none",
        "disagg": "false",
        "isl": load.isl,
        "osl": load.osl,
        "tp": setup.tp_size,
        "ep": 1,
        "dp_attention": "false",
        "tput_per_gpu": rates["in"] + rates["out"],
        "output_tput_per_gpu": rates["out"],
        "input_tput_per_gpu": rates["in"],
    }
    several = {"ttft": each.ttft_s, "tpot": each.tpot_s, "e2el": each.e2el_s}
    for name, values in several.items():
        found = _statistics(name, each.good(values))
        row |= {key.removesuffix("_ms"): value / 1e3 for key, value in found.items()}
    tpot = each.good(each.tpot_s)
    if len(tpot):
        row |= {"median_intvty": float(1 / np.median(tpot)), "p99_intvty": float(1 / np.percentile(tpot, 99))}
    return row


def _tokens(each: SimulatedRun) -> dict[str, int]:
    return {"in": each.tokens_in, "out": each.tokens_out}
