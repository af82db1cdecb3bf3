"""The twins of guidellm's reports, version 2 and 0.3: `python -m tests.data.formats.guidellm.make` writes them anew."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.data.formats.closed_loop import Run, closed_loop

PERCENTILES = {"p001": 0.1, "p01": 1, "p05": 5, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95}
PERCENTILES = {**PERCENTILES, "p99": 99, "p999": 99.9}


def distribution(values: npt.ArrayLike, total: float | None = None) -> dict[str, Any]:
    found = np.asarray(values, dtype=np.float64)
    good = {
        "mean": float(found.mean()),
        "median": float(np.median(found)),
        "std_dev": float(found.std()),
        "min": float(found.min()),
        "max": float(found.max()),
        "count": len(found),
        "total_sum": float(found.sum()) if total is None else total,
        "percentiles": {name: float(np.percentile(found, q)) for name, q in PERCENTILES.items()},
    }
    nothing = {**dict.fromkeys(good, 0.0), "count": 0, "percentiles": dict.fromkeys(PERCENTILES, 0.0)}
    return {"successful": good, "incomplete": nothing, "errored": nothing, "total": good}


def metrics(run: Run) -> dict[str, Any]:
    n = len(run.start_s)
    return {
        "request_totals": {"successful": n, "errored": 0, "incomplete": 0, "total": n},
        "requests_per_second": distribution([n / run.duration_s]),
        "request_latency": distribution(run.e2el_s),
        "prompt_token_count": distribution(run.input_tokens),
        "output_token_count": distribution(run.output_tokens),
        "time_to_first_token_ms": distribution(run.ttft_s * 1e3),
        "time_per_output_token_ms": distribution(run.e2el_s / run.output_tokens * 1e3),
        "inter_token_latency_ms": distribution(run.tpot_s * 1e3),
        "prompt_tokens_per_second": distribution([run.input_tok_per_s]),
        "output_tokens_per_second": distribution([run.output_tok_per_s]),
        "tokens_per_second": distribution([run.input_tok_per_s + run.output_tok_per_s]),
    }


def requests(run: Run) -> dict[str, Any]:
    rows = [
        {
            "type_": "generative_request_stats",
            "request_start_time": float(start),
            "request_end_time": float(start + e2el),
            "prompt_tokens": int(prompt),
            "output_tokens": int(output),
            "time_to_first_token_ms": float(ttft) * 1e3,
            "inter_token_latency_ms": float(tpot) * 1e3,
        }
        for start, e2el, prompt, output, ttft, tpot in zip(
            run.start_s, run.e2el_s, run.input_tokens, run.output_tokens, run.ttft_s, run.tpot_s, strict=True
        )
    ]
    return {"successful": rows, "errored": [], "incomplete": [], "total": None}


def version_2(run: Run) -> dict[str, Any]:
    begin, end = float(run.start_s.min()), float(run.start_s.min() + run.duration_s)
    # Two seconds of warm-up are part of `duration` and of no metric.
    benchmark = {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": "concurrent", "streams": run.slots},
            "constraints": {"max_requests": {"type_": "max_requests", "args": {"count": len(run.start_s)}}},
            "backend": {"kind": "openai_http", "model": "example/dense-8b"},
        },
        "scheduler_metrics": {"measure_start_time": begin, "measure_end_time": end},
        "metrics": metrics(run),
        "requests": requests(run),
        "start_time": begin - 2.0,
        "end_time": end,
        "duration": end - begin + 2.0,
        "warmup_duration": 2.0,
        "cooldown_duration": 0.0,
    }
    data = [{"kind": "synthetic_text", "prompt_tokens": 512, "output_tokens": 128, "output_tokens_stdev": None}]
    return {
        "metadata": {"version": 2, "guidellm_version": "0.8.1", "python_version": "3.12.8"},
        "config": {"spec": {"data": data}},
        "benchmarks": [benchmark],
    }


def early(run: Run) -> dict[str, Any]:
    begin = float(run.start_s.min())
    benchmark = {
        "type_": "generative_benchmark",
        "args": {"strategy": {"type_": "concurrent", "streams": run.slots}},
        "run_stats": {
            "start_time": begin,
            "end_time": begin + run.duration_s,
            "requests_made": {"successful": len(run.start_s), "errored": 0, "incomplete": 0, "total": len(run.start_s)},
        },
        "worker": {"type_": "generative_requests_worker", "backend_model": "example/dense-8b"},
        "request_loader": {"data": "prompt_tokens=512,output_tokens=128"},
        "metrics": {name: value for name, value in metrics(run).items() if name != "request_totals"},
    }
    return {"benchmarks": [benchmark]}


def files() -> dict[str, str]:
    run = closed_loop(seed=4)
    return {
        "report-v2.json": json.dumps(version_2(run)) + "\n",
        "report-0.3.json": json.dumps(early(run)) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
