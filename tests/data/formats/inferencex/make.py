"""The twins of InferenceX's files: `python -m tests.data.formats.inferencex.make` writes them anew."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.data.formats.closed_loop import Run
from tests.data.formats.vllm_serve.make import plain, short_run

# Of two GPUs in one tensor parallel group.
GPUS = 2


def suffixed(run: Run) -> dict[str, Any]:
    """The older client: milliseconds, and a colon in one key."""
    return {
        **{key: value for key, value in plain(run).items() if key not in ("label", "endpoint_type", "rtfx", "failed")},
        "backend": "vllm",
        "date": "20260921-141426",  # when it was written, after the run
        "benchmark_start_time_unix": 1_790_000_000.0,
        "benchmark_end_time_unix": 1_790_000_000.0 + run.duration_s,
        "request_goodput:": None,
    }


def unsuffixed(run: Run) -> dict[str, Any]:
    """Seconds without a suffix, medians and p99 only."""
    kept: tuple[str, ...]
    kept = ("date", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness", "max_concurrency")
    kept += ("duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput")
    found = {
        **{key: value for key, value in plain(run).items() if key in kept},
        "good_completed": None,
        "request_goodput": None,
        "input_throughput": run.input_tok_per_s,
        "output_throughput": run.output_tok_per_s,
    }
    for name, values in (("ttft", run.ttft_s), ("e2el", run.e2el_s), ("tpot", run.tpot_s)):
        found |= {f"median_{name}": float(np.median(values)), f"p99_{name}": float(np.percentile(values, 99))}
    return found


def aggregate(run: Run, version: int) -> dict[str, Any]:
    """One row, as the first (1), second (2) and third (3) version of the schema have it."""
    row: dict[str, Any] = {
        "hw": "mi300x",
        "conc": run.slots,
        "image": "example/engine@sha256:" + "6" * 64,
        "model": "example/dense-8b",
        "infmax_model_prefix": "dense8b",
        "framework": "vllm",
        "precision": "fp8",
        "isl": 256,
        "osl": 8,
        "tp": GPUS,
        "ep": 1,
        "dp_attention": "false",
        "tput_per_gpu": (run.input_tok_per_s + run.output_tok_per_s) / GPUS,
        "output_tput_per_gpu": run.output_tok_per_s / GPUS,
        "input_tput_per_gpu": run.input_tok_per_s / GPUS,
    }
    for name, values in (("ttft", run.ttft_s), ("tpot", run.tpot_s), ("itl", run.tpot_s), ("e2el", run.e2el_s)):
        row |= {f"mean_{name}": float(values.mean()), f"median_{name}": float(np.median(values))}
        row |= {f"std_{name}": float(values.std()), f"p99_{name}": float(np.percentile(values, 99))}
    row |= {"median_intvty": float(1 / np.median(run.tpot_s)), "p99_intvty": float(1 / np.percentile(run.tpot_s, 99))}
    if version > 1:
        row |= {"spec_decoding": "none", "disagg": "false", "is_multinode": "false"}
    return row | (_third(run) if version > 2 else {})


def _third(run: Run) -> dict[str, Any]:
    energy = 500.0 * GPUS * run.duration_s
    tokens_in, tokens_out = int(run.input_tokens.sum()), int(run.output_tokens.sum())
    return {
        "pp": 1,
        "pcp_size": 1,
        "dcp_size": 1,
        "recipe_fingerprint": "0" * 16,
        "power_metric_schema_version": 2,
        "power_valid": True,
        "avg_power_w": 500.0,
        "avg_total_gpu_power_w": 500.0 * GPUS,
        "total_gpu_energy_j": energy,
        "joules_per_output_token": energy / tokens_out,
        "joules_per_total_token": energy / (tokens_in + tokens_out),
    }


def evaluation() -> list[dict[str, Any]]:
    same = {"hw": "mi300x", "model": "example/dense-8b", "framework": "vllm", "precision": "fp8", "tp": GPUS, "conc": 2}
    return [{**same, "task": "gsm8k", "score_name": "em_strict", "score": 0.91, "score_se": 0.008, "n_eff": 1319}]


def files() -> dict[str, str]:
    """Every twin by its name."""
    third = aggregate(short_run(24), 3)
    return {
        "raw.json": json.dumps(suffixed(short_run(20)), indent=1),
        "raw-seconds.json": json.dumps(unsuffixed(short_run(21)), indent=1),
        "agg-1.json": json.dumps(aggregate(short_run(22), 1), indent=1),
        "agg-2.json": json.dumps(aggregate(short_run(23), 2), indent=1),
        "agg-3.json": json.dumps(third, indent=1),
        "perf-eval.json": json.dumps([{**third, "date": "2026-09-21", "device": "mi300x", "nightly": True}], indent=1),
        "agg_eval_all.json": json.dumps(evaluation(), indent=1),
    }


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
