"""The twins of `vllm bench serve`: `python -m tests.data.formats.vllm_serve.make` writes them anew."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.data.formats.closed_loop import STARTED_AT_S, Run, closed_loop


def short_run(seed: int) -> Run:
    """Answers of eight tokens, times of whole microseconds, so that the files stay small."""
    run = closed_loop(seed, requests=640, slots=2, isl=256, osl=8)
    start = (run.start_s - STARTED_AT_S).round(6)
    return Run(start, run.ttft_s.round(6), run.tpot_s.round(6), run.input_tokens, run.output_tokens, run.slots)


def statistics(metric: str, values: npt.ArrayLike) -> dict[str, float]:
    found = np.asarray(values, dtype=np.float64) * 1e3
    shown = {"mean": found.mean(), "median": np.median(found), "std": found.std()}
    shown |= {f"p{q}": np.percentile(found, q) for q in (50, 90, 99)}
    return {f"{statistic}_{metric}_ms": float(value) for statistic, value in shown.items()}


def plain(run: Run) -> dict[str, Any]:
    n, tokens_in, tokens_out = len(run.start_s), int(run.input_tokens.sum()), int(run.output_tokens.sum())
    return {
        "date": "20260921-031500",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "example/dense-8b",
        "tokenizer_id": "example/dense-8b",
        "num_prompts": n,
        "tensor_parallel_size": "1",
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": run.slots,
        "duration": run.duration_s,
        "completed": n,
        "failed": 0,
        "total_input_tokens": tokens_in,
        "total_output_tokens": tokens_out,
        "request_throughput": n / run.duration_s,
        "request_goodput": None,
        "output_throughput": run.output_tok_per_s,
        "total_token_throughput": run.input_tok_per_s + run.output_tok_per_s,
        "max_output_tokens_per_s": float(np.ceil(run.output_tok_per_s * 1.4)),
        "max_concurrent_requests": 2 * run.slots,
        "rtfx": 0.0,
        **statistics("ttft", run.ttft_s),
        **statistics("tpot", run.tpot_s),
        **statistics("itl", np.repeat(run.tpot_s, run.output_tokens - 1)),
        **statistics("e2el", run.e2el_s),
    }


def detailed(run: Run) -> dict[str, Any]:
    n = len(run.start_s)
    return {
        **plain(run),
        "input_lens": run.input_tokens.tolist(),
        "output_lens": run.output_tokens.tolist(),
        "ttfts": run.ttft_s.tolist(),
        "itls": [[tpot] * (tokens - 1) for tpot, tokens in zip(run.tpot_s.tolist(), run.output_tokens, strict=True)],
        "latencies": run.e2el_s.round(6).tolist(),
        "start_times": run.start_s.tolist(),
        "queue_times": [0.0] * n,
        "generated_texts": [""] * n,
        "errors": [""] * n,
    }


def older(run: Run) -> dict[str, Any]:
    """Before 2025: no failures, no end-to-end latency, and two keys that went since."""
    newer = ("failed", "endpoint_type", "label", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx")
    kept = {key: value for key, value in plain(run).items() if key not in newer and "e2el" not in key}
    return {**kept, "backend": "vllm", "best_of": 1, "use_beam_search": False}


def rust(run: Run) -> dict[str, Any]:
    window = {"start_s": 0.0, "end_s": run.duration_s, "duration_s": run.duration_s, "target_concurrency": run.slots}
    return {
        **detailed(run),
        "date": "2026-09-21T03:15:00Z",
        "max_model_len": 4096,
        "input_throughput": run.input_tok_per_s,
        "failed_requests": [],
        "steady_state": {"window": window, "percentiles_ttft_ms": [[50.0, float(np.median(run.ttft_s)) * 1e3]]},
    }


def files() -> dict[str, str]:
    """Every twin by its name."""
    appended = [plain(short_run(3)), plain(short_run(4))]
    return {
        "detailed.json": json.dumps(detailed(short_run(1))),
        "older.json": json.dumps(older(short_run(2))),
        "appended.jsonl": "".join(f"{json.dumps(each)}\n" for each in appended),
        "rust.json": json.dumps(rust(short_run(5))),
    }


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
