"""The twins of aiperf's files: `python -m tests.data.formats.aiperf.make` writes them anew."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.data.formats.closed_loop import Run, closed_loop

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
NAMES = ("request_latency", "time_to_first_token", "inter_token_latency")


def metric(unit: str, values: npt.ArrayLike) -> dict[str, Any]:
    found = np.asarray(values, dtype=np.float64)
    one = {"unit": unit, "avg": float(found.mean())}
    if len(found) == 1:
        return one
    quantiles = {f"p{q}": float(np.percentile(found, q)) for q in PERCENTILES}
    spread = {"min": float(found.min()), "max": float(found.max()), "std": float(found.std())}
    return {**one, **spread, **quantiles, "count": len(found)}


def latencies(run: Run) -> tuple[npt.NDArray[np.float64], ...]:
    return run.e2el_s, run.ttft_s, run.tpot_s


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def aggregate(run: Run) -> dict[str, Any]:
    n = len(run.start_s)
    gpu = {"gpu_power_usage": {"unit": "W", "avg": 500.0, "max": 610.0, "count": 90}}
    return {
        "schema_version": "1.0",
        "aiperf_version": "0.13.0",
        **{name: metric("ms", values * 1e3) for name, values in zip(NAMES, latencies(run), strict=True)},
        "output_token_throughput": metric("tokens/sec", [run.output_tok_per_s]),
        "total_token_throughput": metric("tokens/sec", [run.output_tok_per_s + run.input_tok_per_s]),
        "request_throughput": metric("requests/sec", [n / run.duration_s]),
        "request_count": metric("requests", [n]),
        "benchmark_duration": metric("sec", [run.duration_s]),
        "total_isl": metric("tokens", [run.input_tokens.sum()]),
        "total_osl": metric("tokens", [run.output_tokens.sum()]),
        "input_config": {
            "endpoint": {"model_names": ["example/dense-8b"]},
            "loadgen": {"concurrency": run.slots, "request_count": n, "warmup_request_count": 8},
            "input": {
                "prompt": {"input_tokens": {"mean": 512, "stddev": 0}, "output_tokens": {"mean": 128, "stddev": 0}}
            },
        },
        "telemetry_data": {
            "summary": {
                "endpoints_configured": ["http://localhost:9400/metrics"],
                "endpoints_successful": ["http://localhost:9400/metrics"],
            },
            "endpoints": {"localhost:9400": {"gpus": {"gpu_0": {"gpu_index": 0, "metrics": gpu}}}},
        },
        "was_cancelled": False,
        "error_summary": [],
        "start_time": moment(float(run.start_s.min())),
        "end_time": moment(float(run.start_s.min()) + run.duration_s),
    }


def records(run: Run, chunks: int = 3) -> str:
    lines = [
        _record(run, 0, "warmup", chunks),
        *(_record(run, at, "profiling", chunks) for at in range(len(run.start_s))),
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def _record(run: Run, at: int, phase: str, chunks: int) -> dict[str, Any]:
    begin = int(run.start_s[at] * 1e9)
    gaps = {"inter_chunk_latency": {"value": [float(run.tpot_s[at]) * 1e3] * chunks, "unit": "ms"}} if chunks else {}
    return {
        "metadata": {
            "session_num": at,
            "x_request_id": f"r{at}",
            "benchmark_phase": phase,
            "request_start_ns": begin,
            "was_cancelled": False,
        },
        "metrics": {
            "request_latency": {"value": float(run.e2el_s[at]) * 1e3, "unit": "ms"},
            "time_to_first_token": {"value": float(run.ttft_s[at]) * 1e3, "unit": "ms"},
            **gaps,
            "input_sequence_length": {"value": int(run.input_tokens[at]), "unit": "tokens"},
            "output_sequence_length": {"value": int(run.output_tokens[at]), "unit": "tokens"},
        },
        "error": None,
    }


def several(runs: list[Run]) -> dict[str, Any]:
    found = {
        **{
            f"{name}_avg": over([float(latencies(run)[at].mean()) * 1e3 for run in runs], "ms")
            for at, name in enumerate(NAMES)
        },
        "request_latency_p99": over([float(np.percentile(run.e2el_s, 99)) * 1e3 for run in runs], "ms"),
        "output_token_throughput_avg": over([run.output_tok_per_s for run in runs], "tokens/sec"),
        "request_throughput_avg": over([len(run.start_s) / run.duration_s for run in runs], "requests/sec"),
    }
    return {"metadata": {"num_profile_runs": len(runs)}, "metrics": found}


def over(values: list[float], unit: str) -> dict[str, Any]:
    mean, std, t = float(np.mean(values)), float(np.std(values, ddof=1)), 4.303
    error = std / len(values) ** 0.5
    return {
        "mean": mean,
        "std": std,
        "min": min(values),
        "max": max(values),
        "cv": std / mean,
        "se": error,
        "ci_low": mean - t * error,
        "ci_high": mean + t * error,
        "t_critical": t,
        "unit": unit,
    }


def files() -> dict[str, str]:
    run = closed_loop(seed=7)
    return {
        "profile_export_aiperf.json": json.dumps(aggregate(run), indent=1) + "\n",
        "profile_export.jsonl": records(run, chunks=0),
        "alone.jsonl": records(closed_loop(seed=7, osl=4, slots=1)),
        "aggregate.json": json.dumps(several([run, closed_loop(seed=8), closed_loop(seed=9)]), indent=1) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
