"""The twins of llm-d's Benchmark Report v0.2.1, YAML and JSON: `python -m tests.data.formats.llmd.make`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from tests.data.formats.closed_loop import Run, closed_loop

PERCENTILES = {"p0p1": 0.1, "p1": 1, "p5": 5, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95}
PERCENTILES = {**PERCENTILES, "p99": 99, "p99p9": 99.9}


def statistics(units: str, values: npt.ArrayLike) -> dict[str, Any]:
    found = np.asarray(values, dtype=np.float64)
    one = {"units": units, "mean": float(found.mean())}
    if len(found) == 1:
        return one
    ends = {"min": float(found.min()), "max": float(found.max()), "stddev": float(found.std())}
    return {**one, **ends, **{name: float(np.percentile(found, q)) for name, q in PERCENTILES.items()}}


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def aggregate(run: Run, ms: float) -> dict[str, Any]:
    """With times in ms where `ms` is 1,000: the units say so."""
    time, gap = ("s", "s/token") if ms == 1 else ("ms", "ms/token")
    n = len(run.start_s)
    return {
        "requests": {
            "total": n,
            "failures": 0,
            "incomplete": 0,
            "input_length": statistics("count", run.input_tokens),
            "output_length": statistics("count", run.output_tokens),
        },
        "latency": {
            "time_to_first_token": statistics(time, run.ttft_s * ms),
            "time_per_output_token": statistics(gap, run.tpot_s * ms),
            "normalized_time_per_output_token": statistics(gap, run.e2el_s / run.output_tokens * ms),
            "request_latency": statistics(time, run.e2el_s * ms),
        },
        "throughput": {
            "input_token_rate": statistics("tokens/s", [run.input_tok_per_s]),
            "output_token_rate": statistics("tokens/s", [run.output_tok_per_s]),
            "total_token_rate": statistics("tokens/s", [run.input_tok_per_s + run.output_tok_per_s]),
            "request_rate": statistics("queries/s", [n / run.duration_s]),
        },
    }


def scenario(run: Run) -> dict[str, Any]:
    engine = {
        "kind": "inference_engine",
        "tool": "vllm",
        "tool_version": "0.9.2",
        "role": "replica",
        "replicas": 1,
        "model": {"name": "example/dense-8b"},
        "accelerator": {"model": "MI300X", "count": 2, "parallelism": {"tp": 2, "pp": 1, "dp": 1, "ep": 1}},
    }
    standardized = {
        "tool": "inference-perf",
        "tool_version": "0.3.0",
        "source": "random",
        "stage": 0,
        "concurrency": run.slots,
        "input_seq_len": {"distribution": "fixed", "value": 512},
        "output_seq_len": {"distribution": "fixed", "value": 128},
    }
    return {
        "load": {
            "metadata": {"schema_version": "0.0.1", "cfg_id": "b7"},
            "native": {"config": {"server": {"model_name": "example/dense-8b"}}},
            "standardized": standardized,
        },
        "stack": [
            {
                "metadata": {"schema_version": "0.0.1", "label": "vllm-0", "cfg_id": "a1"},
                "native": {"args": {"--tensor-parallel-size": 2, "--max-model-len": 4096}},
                "standardized": engine,
            }
        ],
    }


def report(run: Run, ms: float) -> dict[str, Any]:
    begin = float(run.start_s.min())
    time = {
        "start": moment(begin),
        "end": moment(begin + run.duration_s),
        "duration": f"PT{run.duration_s!r}S",
    }
    component = {
        "component_label": "vllm-0",
        "aggregate": {
            "gpu_memory_usage": {"units": "GiB", "mean": 120.5},
            "power_consumption": {"units": "Watts", "mean": 480.0},
            "preemptions": {"units": "count", "mean": 0},
        },
    }
    return {
        "version": "0.2.1",
        "run": {"uid": "twin-1", "description": "a run that nobody made", "time": time},
        "scenario": scenario(run),
        "results": {
            "request_performance": {"aggregate": aggregate(run, ms)},
            "observability": {"components": [component]},
        },
    }


def files() -> dict[str, str]:
    run = closed_loop(seed=13)
    return {
        "report.yaml": yaml.safe_dump(report(run, 1.0)),
        "report-ms.json": json.dumps(report(run, 1e3), indent=1) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
