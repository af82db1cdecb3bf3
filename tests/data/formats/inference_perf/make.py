"""The twins of inference-perf's two files of a stage: `python -m tests.data.formats.inference_perf.make`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.data.formats.closed_loop import Run, closed_loop

PERCENTILES = {"p0.1": 0.1, "p1": 1, "p5": 5, "p10": 10, "p25": 25, "median": 50, "p75": 75, "p90": 90, "p95": 95}
PERCENTILES = {**PERCENTILES, "p99": 99, "p99.9": 99.9}


def distribution(values: npt.ArrayLike) -> dict[str, float]:
    found = np.asarray(values, dtype=np.float64)
    ends = {"mean": float(found.mean()), "min": float(found.min()), "max": float(found.max())}
    return {**ends, **{name: float(np.percentile(found, q)) for name, q in PERCENTILES.items()}}


def client(run: Run) -> dict[str, Any]:
    n = len(run.start_s)
    return {
        "load_summary": {
            "count": n,
            "schedule_delay": distribution(np.full(n, 0.0004)),
            "send_duration": run.duration_s - 1.6,
            "requested_rate": 0.0,
            "achieved_rate": n / (run.duration_s - 1.6),
        },
        "successes": {
            "count": n,
            "latency": {
                "request_latency": distribution(run.e2el_s),
                "normalized_time_per_output_token": distribution(run.e2el_s / run.output_tokens),
                "time_per_output_token": distribution(run.tpot_s),
                "time_to_first_token": distribution(run.ttft_s),
                "inter_token_latency": distribution(run.tpot_s),
            },
            "throughput": {
                "input_tokens_per_sec": run.input_tok_per_s,
                "output_tokens_per_sec": run.output_tok_per_s,
                "total_tokens_per_sec": run.input_tok_per_s + run.output_tok_per_s,
                "requests_per_sec": n / run.duration_s,
            },
            "prompt_len": distribution(run.input_tokens),
            "output_len": distribution(run.output_tokens),
        },
        "failures": {"count": 0, "request_latency": None, "prompt_len": None},
    }


def server(run: Run) -> dict[str, Any]:
    n = len(run.start_s)
    ttft, tpot = run.ttft_s * 0.98, run.tpot_s
    return {
        "successes": {
            "count": n,
            "rate": n / run.duration_s,
            "prompt_len": {"mean": 512.0, "rate": run.input_tok_per_s},
            "output_len": {"mean": 128.0, "rate": run.output_tok_per_s},
            "queue_len": {"mean": 0.0},
            "request_latency": {"mean": float(run.e2el_s.mean())},
            "time_to_first_token": {"mean": float(ttft.mean()), "p99": float(np.percentile(ttft, 99))},
            "time_per_output_token": {"mean": float(tpot.mean()), "p99": float(np.percentile(tpot, 99))},
            "kv_cache_usage_percentage": {"mean": 31.0},
            "num_requests_swapped": {"mean": 0.0},
            "num_preemptions_total": 0.0,
            "prefix_cache_hit_percent": 0.0,
        }
    }


def files() -> dict[str, str]:
    run = closed_loop(seed=11)
    return {
        "stage_0_lifecycle_metrics.json": json.dumps(client(run), indent=1) + "\n",
        "stage_0_prometheus_metrics.json": json.dumps(server(run), indent=1) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
