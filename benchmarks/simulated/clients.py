"""Writers of the reports of GuideLLM, AIPerf, inference-perf and llm-d."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.simulated.runs import SimulatedRun
from benchmarks.simulated.vllm import Files, model_name

PERCENTILES = (0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
WARMUP_S = 2.0
Quantile = Callable[[float], str]


def guidellm(runs: Sequence[SimulatedRun]) -> Files:
    """One report with a benchmark for each run."""
    report = {
        "metadata": {"version": 2, "guidellm_version": "0.8.1", "python_version": "3.12.8"},
        "config": {"spec": {"data": [_synthetic(runs[0])]}},
        "benchmarks": [_guidellm_benchmark(each) for each in runs],
    }
    return {"benchmarks.json": json.dumps(report)}


def aiperf(runs: Sequence[SimulatedRun]) -> Files:
    """A report for each run."""
    return {f"profile_export_aiperf_{at}.json": json.dumps(_aiperf_report(each)) for at, each in enumerate(runs)}


def inference_perf(runs: Sequence[SimulatedRun]) -> Files:
    """The client's file and the server's of each stage."""
    files = {}
    for at, each in enumerate(runs):
        files[f"stage_{at}_lifecycle_metrics.json"] = json.dumps(_stage(each))
        files[f"stage_{at}_prometheus_metrics.json"] = json.dumps(_server(each))
    return files


def llmd(runs: Sequence[SimulatedRun]) -> Files:
    """A report of version 0.2 for each run; every other one in milliseconds."""
    return {f"report-{at}.json": json.dumps(_report(each, 1e3 if at % 2 else 1.0)) for at, each in enumerate(runs)}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _spread(values: npt.ArrayLike, named: Quantile, mean: str = "mean", std: str = "std") -> dict[str, float]:
    found = np.asarray(values, dtype=np.float64)
    ends = {mean: float(found.mean()), std: float(found.std()), "min": float(found.min()), "max": float(found.max())}
    return {**ends, **{named(q): float(np.percentile(found, q)) for q in PERCENTILES}}


def _normalized(each: SimulatedRun) -> npt.NDArray[np.float64]:
    return (each.e2el_s / np.maximum(each.output_tokens, 1))[each.is_ok]


def _chunk_means(each: SimulatedRun) -> list[float]:
    return [float(gaps.mean()) for gaps in each.gaps_s if len(gaps)]


def _synthetic(each: SimulatedRun) -> dict[str, Any]:
    load = each.load
    drawn = {"prompt_tokens_stdev": load.isl * load.length_spread, "output_tokens_stdev": load.osl * load.length_spread}
    return {
        "kind": "synthetic_text",
        "prompt_tokens": load.isl,
        "output_tokens": load.osl,
        **(drawn if load.length_spread else {}),
    }


def _guidellm_benchmark(each: SimulatedRun) -> dict[str, Any]:
    load, n = each.load, len(each.is_ok)
    strategy = {"type_": "concurrent", "streams": load.concurrency}
    if load.rate_per_s:
        strategy = {"type_": "poisson", "rate": load.rate_per_s}  # type: ignore[dict-item]  # numbers
    begin = each.started_at_s + WARMUP_S
    totals = {"successful": each.completed, "errored": each.failed, "incomplete": 0, "total": n}
    return {
        "type_": "generative_benchmark",
        "config": {
            "strategy": strategy,
            "constraints": {"max_requests": {"type_": "max_requests", "args": {"count": n}}},
            "backend": {"kind": "openai_http", "model": model_name(each.setup)},
        },
        "scheduler_metrics": {"measure_start_time": begin, "measure_end_time": begin + each.duration_s},
        "metrics": {"request_totals": totals, **_guidellm_metrics(each)},
        "requests": None,
        "start_time": each.started_at_s,
        "end_time": begin + each.duration_s,
        "duration": each.duration_s + WARMUP_S,
        "warmup_duration": WARMUP_S,
        "cooldown_duration": 0.0,
    }


def _guidellm_metrics(each: SimulatedRun) -> dict[str, Any]:
    took, tokens_in, tokens_out = each.duration_s, each.tokens_in, each.tokens_out
    found: dict[str, npt.ArrayLike] = {
        "requests_per_second": [each.completed / took],
        "request_latency": each.good(each.e2el_s),
        "prompt_token_count": each.input_tokens[each.is_ok],
        "output_token_count": each.output_tokens[each.is_ok],
        "time_to_first_token_ms": each.good(each.ttft_s) * 1e3,
        "time_per_output_token_ms": _normalized(each) * 1e3,
        "prompt_tokens_per_second": [tokens_in / took],
        "output_tokens_per_second": [tokens_out / took],
        "tokens_per_second": [(tokens_in + tokens_out) / took],
    }
    if len(each.good(each.tpot_s)):
        found["inter_token_latency_ms"] = each.good(each.tpot_s) * 1e3
    return {name: _guidellm_distribution(values) for name, values in found.items()}


def _guidellm_distribution(values: npt.ArrayLike) -> dict[str, Any]:
    found = np.asarray(values, dtype=np.float64)
    spread = _spread(found, lambda q: "p" + f"{q:04.1f}".replace(".", "").removesuffix("0"), std="std_dev")
    ends = {name: spread.pop(name) for name in ("mean", "std_dev", "min", "max")}
    whole = {"median": float(np.median(found)), "count": len(found), "total_sum": float(found.sum())}
    spread["p001"] = float(np.percentile(found, 0.1))
    good = {**ends, **whole, "percentiles": spread}
    return {"successful": good, "total": good}


def _aiperf_report(each: SimulatedRun) -> dict[str, Any]:
    load, took = each.load, each.duration_s
    latencies = {"request_latency": each.e2el_s, "time_to_first_token": each.ttft_s, "inter_token_latency": each.tpot_s}
    driven = {"request_rate": load.rate_per_s} if load.rate_per_s else {"concurrency": load.concurrency}
    known = {name: each.good(values) for name, values in latencies.items()}
    lengths = {"input_tokens": load.isl, "output_tokens": load.osl}
    totals = {
        "output_token_throughput": ("tokens/sec", each.tokens_out / took),
        "total_token_throughput": ("tokens/sec", (each.tokens_in + each.tokens_out) / took),
        "request_throughput": ("requests/sec", each.completed / took),
        "request_count": ("requests", each.completed),
        "error_request_count": ("requests", each.failed),
        "benchmark_duration": ("sec", took),
        "total_isl": ("tokens", each.tokens_in),
        "total_osl": ("tokens", each.tokens_out),
    }
    return {
        "schema_version": "1.0",
        "aiperf_version": "0.13.0",
        **{name: _aiperf_metric(values * 1e3) for name, values in known.items() if len(values)},
        **{name: {"unit": unit, "avg": value} for name, (unit, value) in totals.items()},
        "input_config": {
            "endpoint": {"model_names": [model_name(each.setup)]},
            "loadgen": {**driven, "request_count": len(each.is_ok), "warmup_request_count": 8},
            "input": {
                "prompt": {name: {"mean": mean, "stddev": mean * load.length_spread} for name, mean in lengths.items()}
            },
        },
        "was_cancelled": False,
        "error_summary": [{"count": each.failed}] if each.failed else [],
        "start_time": _moment(each.started_at_s),
        "end_time": _moment(each.started_at_s + took),
    }


def _aiperf_metric(values_ms: npt.NDArray[np.float64]) -> dict[str, Any]:
    spread = _spread(values_ms, lambda q: f"p{q:g}", mean="avg")
    return {"unit": "ms", **{name: value for name, value in spread.items() if "." not in name}}


def _stage(each: SimulatedRun) -> dict[str, Any]:
    n, took, load = len(each.is_ok), each.duration_s, each.load
    sending_s = float(each.start_s.max() - each.start_s.min())
    latency: dict[str, npt.ArrayLike] = {
        "request_latency": each.good(each.e2el_s),
        "normalized_time_per_output_token": _normalized(each),
        "time_to_first_token": each.good(each.ttft_s),
    }
    if _chunk_means(each):
        latency |= {"time_per_output_token": _chunk_means(each), "inter_token_latency": np.concatenate(each.gaps_s)}
    return {
        "load_summary": {
            "count": n,
            "schedule_delay": _inference_perf_spread(np.full(n, 4e-4)),
            "send_duration": sending_s,
            "requested_rate": load.rate_per_s or 0.0,
            "achieved_rate": n / sending_s,
            **({"concurrency": load.concurrency} if load.concurrency else {}),
        },
        "successes": {
            "count": each.completed,
            "latency": {name: _inference_perf_spread(values) for name, values in latency.items()},
            "throughput": {
                "input_tokens_per_sec": each.tokens_in / took,
                "output_tokens_per_sec": each.tokens_out / took,
                "total_tokens_per_sec": (each.tokens_in + each.tokens_out) / took,
                "requests_per_sec": each.completed / took,
            },
            "prompt_len": _inference_perf_spread(each.input_tokens[each.is_ok]),
            "output_len": _inference_perf_spread(each.output_tokens[each.is_ok]),
        },
        "failures": {"count": each.failed, "request_latency": None, "prompt_len": None},
    }


def _inference_perf_spread(values: npt.ArrayLike) -> dict[str, float]:
    spread = _spread(values, lambda q: "median" if q == 50 else f"p{q:g}")  # noqa: PLR2004 - the median's rank
    return {name: value for name, value in spread.items() if name != "std"}


def _server(each: SimulatedRun) -> dict[str, Any]:
    """The server's own times start when it has the request; it puts one token in front of each prompt."""
    took, n, late = each.duration_s, each.completed, each.load.round_trip_s
    ttft = np.maximum(each.good(each.ttft_s) - late, 1e-4)
    tpot = each.good(each.tpot_s)
    return {
        "successes": {
            "count": n,
            "rate": n / took,
            "prompt_len": {"mean": (each.tokens_in + n) / n, "rate": (each.tokens_in + n) / took},
            "output_len": {"mean": each.tokens_out / n, "rate": each.tokens_out / took},
            "queue_len": {"mean": 0.0},
            "request_latency": {"mean": float(each.good(each.e2el_s).mean() - late)},
            "time_to_first_token": {"mean": float(ttft.mean()), "p99": float(np.percentile(ttft, 99))},
            "time_per_output_token": {"mean": float(tpot.mean()) if len(tpot) else 0.0},
            "kv_cache_usage_percentage": {"mean": 31.0},
            "num_requests_swapped": {"mean": 0.0},
            "num_preemptions_total": 0.0,
            "prefix_cache_hit_percent": 0.0,
        }
    }


def _report(each: SimulatedRun, scale: float) -> dict[str, Any]:
    took = each.duration_s
    begin = each.started_at_s
    time = {"start": _moment(begin), "end": _moment(begin + took), "duration": f"PT{took!r}S"}
    return {
        "version": "0.2.1",
        "run": {"uid": str(each.seed), "time": time},
        "scenario": _scenario(each),
        "results": {"request_performance": {"aggregate": _report_aggregate(each, scale)}},
    }


def _report_aggregate(each: SimulatedRun, scale: float) -> dict[str, Any]:
    n, took = len(each.is_ok), each.duration_s
    unit = "s" if scale == 1 else "ms"
    latency = {
        "time_to_first_token": _llmd(unit, each.good(each.ttft_s) * scale),
        "normalized_time_per_output_token": _llmd(f"{unit}/token", _normalized(each) * scale),
        "request_latency": _llmd(unit, each.good(each.e2el_s) * scale),
    }
    if len(each.good(each.tpot_s)):
        latency["time_per_output_token"] = _llmd(f"{unit}/token", each.good(each.tpot_s) * scale)
        latency["inter_token_latency"] = _llmd(f"{unit}/token", np.concatenate(each.gaps_s) * scale)
    rates = {"input_token_rate": each.tokens_in, "output_token_rate": each.tokens_out}
    rates["total_token_rate"] = sum(rates.values())
    return {
        "requests": {
            "total": n,
            "failures": each.failed,
            "incomplete": 0,
            "input_length": _llmd("count", each.input_tokens[each.is_ok]),
            "output_length": _llmd("count", each.output_tokens[each.is_ok]),
        },
        "latency": latency,
        "throughput": {
            **{name: {"units": "tokens/s", "mean": tokens / took} for name, tokens in rates.items()},
            "request_rate": {"units": "queries/s", "mean": each.completed / took},
        },
    }


def _llmd(units: str, values: npt.ArrayLike) -> dict[str, Any]:
    spread = _spread(values, lambda q: "p" + f"{q:g}".replace(".", "p"), std="stddev")
    return {"units": units, **spread}


def _scenario(each: SimulatedRun) -> dict[str, Any]:
    setup, load = each.setup, each.load
    name = model_name(setup)
    shape = "uniform" if load.length_spread else "fixed"
    driven = {"rate_qps": load.rate_per_s} if load.rate_per_s else {"concurrency": load.concurrency}
    parallelism = {"tp": setup.tp_size, "pp": 1, "dp": 1, "ep": 1}
    return {
        "load": {
            "metadata": {"schema_version": "0.0.1", "cfg_id": "b7"},
            "native": {"config": {"server": {"model_name": name}}},
            "standardized": {
                "tool": "inference-perf",
                "tool_version": "0.3.0",
                "source": "random",
                "stage": 0,
                **driven,
                "input_seq_len": {"distribution": shape, "value": load.isl},
                "output_seq_len": {"distribution": shape, "value": load.osl},
            },
        },
        "stack": [
            {
                "metadata": {"schema_version": "0.0.1", "label": "vllm-0", "cfg_id": "a1"},
                "native": {"args": {"--tensor-parallel-size": setup.tp_size}},
                "standardized": {
                    "kind": "inference_engine",
                    "tool": "vllm",
                    "tool_version": "0.20.1",
                    "role": "replica",
                    "replicas": 1,
                    "model": {"name": name},
                    "accelerator": {"model": setup.gpu.gpu, "count": setup.tp_size, "parallelism": parallelism},
                },
            }
        ],
    }
