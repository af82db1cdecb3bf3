"""The twins of `vllm bench throughput` and `vllm bench latency`: `python -m tests.data.formats.vllm_offline.make`."""

import json
from pathlib import Path

import numpy as np


def files() -> dict[str, str]:
    """Every twin by its name."""
    elapsed, requests, tokens = 125.5, 1000, 384_000
    throughput = {
        "model_id": "example/dense-8b",
        "elapsed_time": elapsed,
        "num_requests": requests,
        "total_num_tokens": tokens,
        "requests_per_second": requests / elapsed,
        "tokens_per_second": tokens / elapsed,
    }
    iterations = np.random.default_rng(7).normal(2.5, 0.02, 30).round(6)
    latency = {
        "model_id": "example/dense-8b",
        "avg_latency": float(iterations.mean()),
        "latencies": iterations.tolist(),
        "percentiles": {str(q): float(np.percentile(iterations, q)) for q in (10, 25, 50, 75, 90, 99)},
    }
    return {"throughput.json": json.dumps(throughput, indent=1), "latency.json": json.dumps(latency, indent=1)}


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
