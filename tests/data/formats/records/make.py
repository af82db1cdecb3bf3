"""The twins of tools whose records a table of field names reads: `python -m tests.data.formats.records.make`."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.data.formats.closed_loop import Run, closed_loop

RUN = closed_loop(21, requests=640, slots=4, isl=512, osl=128)
TP = 2
RANKS = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


def spread(values: npt.ArrayLike) -> dict[str, float]:
    """As TensorRT-LLM writes a distribution, in milliseconds."""
    found = np.asarray(values, dtype=np.float64) * 1e3
    ranks = {name: float(np.percentile(found, q)) for name, q in RANKS.items()}
    return {**ranks, "minimum": float(found.min()), "maximum": float(found.max()), "average": float(found.mean())}


def trtllm(run: Run) -> dict[str, Any]:
    n, tokens = len(run.start_s), float(run.output_tokens.sum())
    total_s = run.duration_s
    return {
        "engine": {
            "model": "example/dense-8b",
            "model_path": None,
            "version": "1.2.0",
            "backend": "Pytorch",
            "dtype": "bfloat16",
            "kv_cache_dtype": "FP8",
            "quantization": "FP8",
        },
        "world_info": {
            "tp_size": TP,
            "pp_size": 1,
            "ep_size": 1,
            "world_size": TP,
            "max_batch_size": 2048,
            "max_num_tokens": 8192,
            "scheduling_policy": "GUARANTEED_NO_EVICT",
            "kv_cache_percentage": 0.9,
        },
        "request_info": {
            "num_requests": n,
            "avg_num_concurrent_requests": float(run.e2el_s.sum()) / total_s,
            "avg_input_length": float(run.input_tokens.mean()),
            "avg_output_length": float(run.output_tokens.mean()),
        },
        "performance": {
            "total_latency_ms": total_s * 1e3,
            "avg_request_latency_ms": float(run.e2el_s.mean()) * 1e3,
            "request_throughput_req_s": n / total_s,
            "system_output_throughput_tok_s": tokens / total_s,
            "system_total_throughput_tok_s": (tokens + float(run.input_tokens.sum())) / total_s,
            "output_throughput_per_user_tok_s": float((run.output_tokens / run.e2el_s).mean()),
            "output_throughput_per_gpu_tok_s": tokens / total_s / TP,
            "request_latency_percentiles_ms": spread(run.e2el_s),
        },
        "streaming_metrics": {
            "token_output_speed_tok_s": float((1 / run.tpot_s).mean()),
            "avg_ttft_ms": float(run.ttft_s.mean()) * 1e3,
            "avg_tpot_ms": float(run.tpot_s.mean()) * 1e3,
            "tpot_percentiles": spread(run.tpot_s),
            "ttft_percentiles": spread(run.ttft_s),
        },
    }


def sglang_serve(run: Run) -> dict[str, Any]:
    n, total_s = len(run.start_s), run.duration_s
    latencies = {"e2e_latency": run.e2el_s, "ttft": run.ttft_s, "tpot": run.tpot_s}
    found = {f"{metric}_ms": np.asarray(values) * 1e3 for metric, values in latencies.items()}
    moments: Mapping[str, Callable[[Any], Any]] = {"mean": np.mean, "median": np.median, "std": np.std}
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": float("inf"),
        "max_concurrency": run.slots,
        "random_input_len": 512,
        "random_output_len": 128,
        "random_range_ratio": 1.0,
        "duration": total_s,
        "completed": n,
        "total_input_tokens": int(run.input_tokens.sum()),
        "total_output_tokens": int(run.output_tokens.sum()),
        "request_throughput": n / total_s,
        "input_throughput": run.input_tok_per_s,
        "output_throughput": run.output_tok_per_s,
        "total_throughput": run.input_tok_per_s + run.output_tok_per_s,
        **{f"{word}_{name}": float(of(values)) for name, values in found.items() for word, of in moments.items()},
        **{f"p99_{name}": float(np.percentile(values, 99)) for name, values in found.items()},
        "concurrency": float(run.e2el_s.sum()) / total_s,
        "accept_length": None,
    }


def one_batch(batch: int) -> dict[str, Any]:
    """Prompts of one batch, then its answers, step by step."""
    isl, osl, prefill, step = 1024, 128, 0.02 * batch, 0.01 + 0.0004 * batch
    total = prefill + step * (osl - 1)
    return {
        "run_name": "twin",
        "batch_size": batch,
        "input_len": isl,
        "output_len": osl,
        "prefill_latency": prefill,
        "prefill_throughput": batch * isl / prefill,
        "median_decode_latency": step,
        "median_decode_throughput": batch / step,
        "total_latency": total,
        "overall_throughput": batch * (isl + osl) / total,
    }


def offline() -> dict[str, Any]:
    total, requests, isl, osl = 125.5, 1000, 256, 128
    return {
        "backend": "engine",
        "successful_requests": requests,
        "total_latency": total,
        "total_input_tokens": requests * isl,
        "total_output_tokens": requests * osl,
        "last_gen_throughput": 1080.5,
        "request_throughput": requests / total,
        "input_throughput": requests * isl / total,
        "output_throughput": requests * osl / total,
        "total_throughput": requests * (isl + osl) / total,
    }


def llama(prompts: int, answers: int, speed: float, *, has_samples: bool = True) -> dict[str, Any]:
    tokens, draw = prompts + answers, np.random.default_rng(prompts + answers)
    samples = (draw.normal(tokens / speed, tokens / speed / 500, 5) * 1e9).round()
    rates = tokens / samples * 1e9
    found: dict[str, Any] = {
        "build_commit": "0123abc",
        "build_number": 6500,
        "gpu_info": "NVIDIA GeForce RTX 4090",
        "backends": "CUDA",
        "model_filename": "models/dense-8b-Q4_K_M.gguf",
        "model_type": "dense 8B Q4_K - Medium",
        "model_size": 4920734720,
        "model_n_params": 8030261248,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": 99,
        "n_prompt": prompts,
        "n_gen": answers,
        "n_depth": 0,
        "test_time": "2026-09-21T03:15:00Z",
        "avg_ns": round(float(samples.mean())),
        "stddev_ns": round(float(samples.std(ddof=1))),
        "avg_ts": float(rates.mean()),
        "stddev_ts": float(rates.std(ddof=1)),
    }
    return found | {"samples_ns": samples.astype(int).tolist(), "samples_ts": rates.tolist()} if has_samples else found


def genai_perf(run: Run) -> str:
    metrics = {
        "Time To First Token (ms)": run.ttft_s * 1e3,
        "Request Latency (ms)": run.e2el_s * 1e3,
        "Inter Token Latency (ms)": run.tpot_s * 1e3,
        "Output Sequence Length (tokens)": run.output_tokens,
        "Input Sequence Length (tokens)": run.input_tokens,
    }
    ranks = (99, 95, 90, 75, 50, 25)
    rows: list[list[str]] = [["Metric", "avg", "min", "max", *(f"p{q}" for q in ranks)]]
    for name, values in metrics.items():
        found = (np.mean(values), np.min(values), np.max(values), *(np.percentile(values, q) for q in ranks))
        rows.append([name, *(f"{value:,.2f}" for value in found)])
    rows += [
        [],
        ["Metric", "Value"],
        ["Output Token Throughput (per sec)", f"{run.output_tok_per_s:,.2f}"],
        ["Request Throughput (per sec)", f"{len(run.start_s) / run.duration_s:,.2f}"],
        ["Request Count (count)", f"{len(run.start_s):,.2f}"],
    ]
    return _csv(rows)


def mlperf_summary() -> str:
    row = {
        "Organization": "Nobody",
        "Availability": "available",
        "Division": "closed",
        "SystemType": "datacenter",
        "SystemName": "8x Example",
        "Platform": "example-8",
        "Model": "llama2-70b-99.9",
        "MlperfModel": "llama2-70b-99.9",
        "Scenario": "Offline",
        "Result": 56000.5,
        "Accuracy": "ROUGE1: 44.4",
        "number_of_nodes": 2,
        "accelerator_model_name": "AMD Instinct MI300X",
        "accelerators_per_node": 8,
        "framework": "vLLM",
        "version": "v5.1",
        "Units": "Tokens/s",
        "weight_data_types": "fp8",
    }
    return _csv([list(row), *([str(value) for value in each.values()] for each in (row, {**row, "Result": 54000.25}))])


def aiconfigurator(concurrency: int, ttft_ms: float, tpot_ms: float) -> dict[str, Any]:
    """One row of its CSV of aggregated serving; the numbers are invented and agree with each other."""
    isl, osl, gpus = 1024, 256, 2
    e2el_ms = ttft_ms + (osl - 1) * tpot_ms
    seq_per_s = concurrency / e2el_ms * 1e3
    tokens_per_s = seq_per_s * osl
    own = {"model": "meta-llama/Llama-3.1-8B-Instruct", "isl": isl, "osl": osl, "prefix": 0, "concurrency": concurrency}
    load = {"request_rate": seq_per_s, "bs": concurrency, "global_bs": concurrency}
    speed = {"ttft": ttft_ms, "tpot": tpot_ms, "request_latency": e2el_ms, "seq/s": seq_per_s}
    rates = {"tokens/s": tokens_per_s, "tokens/s/gpu": tokens_per_s / gpus, "tokens/s/user": 1e3 / tpot_ms}
    shape = {"num_total_gpus": gpus, "tp": 2, "pp": 1, "dp": 1, "gemm": "fp8", "kvcache": "fp8", "memory": 61.5}
    return own | load | speed | rates | shape | {"backend": "trtllm", "version": "1.2.0", "system": "h200_sxm"}


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in records)


def files() -> dict[str, str]:
    """Every twin by its name."""
    tests = [(512, 0, 3200.0), (0, 128, 95.0), (512, 128, 410.0)]
    rows = [llama(*test, has_samples=False) for test in tests]
    planned = [aiconfigurator(1, 38.0, 5.2), aiconfigurator(16, 210.0, 8.1)]
    return {
        "aiconfigurator.csv": _csv([list(planned[0]), *([str(value) for value in row.values()] for row in planned)]),
        "trtllm-bench.json": json.dumps(trtllm(RUN), indent=1),
        "sglang-serve.jsonl": _lines([sglang_serve(RUN)]),
        "sglang-one-batch.jsonl": _lines([one_batch(1), one_batch(16)]),
        "sglang-offline.jsonl": _lines([offline()]),
        "llama-bench.json": json.dumps([llama(*test) for test in tests], indent=1),
        "llama-bench.csv": _csv([list(rows[0]), *([str(value) for value in row.values()] for row in rows)]),
        "genai-perf.csv": genai_perf(RUN),
        "mlperf-summary.csv": mlperf_summary(),
    }


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text)
