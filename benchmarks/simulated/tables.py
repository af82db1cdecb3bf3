"""Writers of tables and of reports that print rounded numbers: MAD, NVIDIA, MLPerf and tables of published numbers."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.simulated.runs import SimulatedRun, run
from benchmarks.simulated.vllm import Files, batch_s, long_enough, model_name

RULE = "=" * 48
USD_PER_GPU_HOUR = 2.59
SERVER_REQUESTS = 600


def mad_metrics(runs: Sequence[SimulatedRun]) -> Files:
    """A row for each metric of each closed loop."""
    rows = [{**_mad_about(each), **one} for each in runs if each.load.concurrency for one in _mad_serving(each)]
    return {"multiple_results.csv": _table(rows)} if rows else {}


def mad_reports(runs: Sequence[SimulatedRun]) -> Files:
    """The legacy reports of batches: latencies and throughputs."""
    latencies, rates = [], []
    for at, each in enumerate(runs):
        load = each.load
        same = {"tp": each.setup.tp_size, "input_len": load.isl, "output_len": load.osl, "dtype": _dtype(each)}
        took = float(batch_s(each, 2**at).mean())
        row = {"latency (ms)": took * 1e3, "latency_per_tkn (ms)": took * 1e3 / load.osl, "batch_size": 2**at}
        latencies.append({"model": model_name(each.setup), **row, **same})
        one = long_enough(each, 100 * 2**at)
        total = {"throughput_tot (tok/sec)": (one.tokens_in + one.tokens_out) / one.duration_s}
        row = {**total, "throughput_gen (tok/sec)": one.tokens_out / one.duration_s, "requests": len(one.is_ok)}
        rates.append({"model": model_name(each.setup), **row, **same})
    return {"m_latency_report.csv": _table(latencies), "m_throughput_report.csv": _table(rates)}


def nvidia_csv(runs: Sequence[SimulatedRun]) -> Files:
    """A row for each batch, with the unit in the cell."""
    rows = [
        {
            "Model": model_name(each.setup),
            "PP": 1,
            "TP": each.setup.tp_size,
            "Input Length": each.load.isl,
            "Output Length": each.load.osl,
            "Throughput": f"{one.tokens_out / one.duration_s:.1f} output tokens/sec",
            "GPU": f"{each.setup.tp_size}x {each.setup.gpu.gpu}",
            "Server": "example",
            "Precision": _printed(each),
            "Framework": "vLLM 0.20.1",
        }
        for at, each in enumerate(runs)
        for one in [long_enough(each, 100 * 2**at)]
    ]
    return {"table.csv": _table(rows)}


def nvidia_json(runs: Sequence[SimulatedRun]) -> Files:
    """Version 2: levels of concurrency, and the cost of the best one."""
    closed = [each for each in runs if each.load.concurrency]
    if not closed:
        return {}
    levels = [
        {
            "concurrency": each.load.concurrency,
            "input_len": each.load.isl,
            "output_len": each.load.osl,
            "total_tokens": each.tokens_out,
            "wall_time_sec": each.duration_s,
            "throughput_tok_s": each.tokens_out / each.duration_s,
            "successful_requests": each.completed,
            "failed_requests": each.failed,
        }
        for each in closed
    ]
    setup, best = closed[0].setup, max(each.tokens_out / each.duration_s for each in closed)
    per_hour = USD_PER_GPU_HOUR * setup.tp_size
    cost = {
        "hourly_cost_usd": per_hour,
        "throughput_tok_s": best,
        "tokens_per_hour": round(best * 3600),
        "cost_per_1m_output_tokens_usd": per_hour / (best * 3600) * 1e6,
    }
    about = {"timestamp": "2026-11-21T02:00:00Z", "model": model_name(setup), "framework": "vLLM 0.20.1"}
    about |= {"gpu": f"{setup.tp_size}x {setup.gpu.gpu}", "server": "example", "precision": _printed(closed[0])}
    report = {"metadata": {**about, "benchmark_version": "v2", "hourly_cost_usd": per_hour}}
    return {"report.json": json.dumps({**report, "concurrency_benchmarks": levels, "cost_analysis": cost})}


def mlperf(runs: Sequence[SimulatedRun]) -> Files:
    """A summary of a server scenario for each open loop, of as many requests as one must have, and one offline."""
    served = {at: each for at, each in enumerate(runs) if each.load.rate_per_s and each.load.osl > 1}
    files = {f"server-{at}.txt": _server(_repeated(each)) for at, each in served.items()}
    return {**files, "offline.txt": _offline(long_enough(runs[0], 400))}


def _repeated(each: SimulatedRun) -> SimulatedRun:
    return run(each.setup, replace(each.load, requests=SERVER_REQUESTS), each.seed, each.started_at_s)


def claims_long(runs: Sequence[SimulatedRun]) -> Files:
    """A row for each number, as printed in a report: three digits or four."""
    rows = []
    for each in runs:
        numbers = [
            ("output_throughput", f"{each.tokens_out / each.duration_s:.4g}", "tok/s"),
            ("total_throughput", f"{(each.tokens_in + each.tokens_out) / each.duration_s:.4g}", "tok/s"),
            ("request_throughput", f"{each.completed / each.duration_s:.3g}", "req/s"),
            ("mean_ttft_ms", f"{each.good(each.ttft_s).mean() * 1e3:.4g}", "ms"),
            ("mean_e2el_ms", f"{each.good(each.e2el_s).mean() * 1e3:.4g}", "ms"),
        ]
        if len(each.good(each.tpot_s)):
            numbers.append(("mean_tpot_ms", f"{each.good(each.tpot_s).mean() * 1e3:.3g}", "ms"))
        rows += [{**_claim(each), "metric": name, "value": value, "unit": unit} for name, value, unit in numbers]
    return {"claims.csv": _table(rows)}


def claims_wide(runs: Sequence[SimulatedRun]) -> Files:
    """A row for each run, as a vendor prints it."""
    rows = [
        {
            **_claim(each),
            "Throughput (tok/s)": f"{each.tokens_out / each.duration_s:,.0f}",
            "Mean TTFT (ms)": f"{each.good(each.ttft_s).mean() * 1e3:.0f}",
            "P99 TTFT (ms)": f"{np.percentile(each.good(each.ttft_s), 99) * 1e3:.0f}",
        }
        for each in runs
    ]
    return {"vendor.csv": _table(rows)}


def _table(rows: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _dtype(each: SimulatedRun) -> str:
    return {"bf16": "bfloat16"}.get(each.setup.precision, each.setup.precision)


def _printed(each: SimulatedRun) -> str:
    return each.setup.precision.upper()


def _mad_about(each: SimulatedRun) -> dict[str, Any]:
    load = each.load
    return {
        "model": model_name(each.setup),
        "benchmark": "serving",
        "tp": each.setup.tp_size,
        "inp": load.isl,
        "out": load.osl,
        "dtype": _dtype(each),
        "num_prompts": len(each.is_ok),
        "max_concurrency": load.concurrency,
        "bs": "",
        "cmd": f"vllm bench serve --seed {each.seed}",
    }


def _mad_serving(each: SimulatedRun) -> Iterable[dict[str, Any]]:
    took = each.duration_s
    yield {
        "performance": (each.tokens_in + each.tokens_out) / took,
        "metric": "total_token_throughput",
        "unit": "tok/s",
    }
    yield {"performance": each.tokens_out / took, "metric": "output_throughput", "unit": "tok/s"}
    yield {"performance": each.completed / took, "metric": "request_throughput", "unit": "req/s"}
    latencies = {"ttft": each.ttft_s, "tpot": each.tpot_s, "e2el": each.e2el_s}
    for name, values in latencies.items():
        if len(each.good(values)):
            yield {"performance": float(each.good(values).mean()) * 1e3, "metric": f"mean_{name}_ms", "unit": "ms"}


def _claim(each: SimulatedRun) -> dict[str, Any]:
    setup, load = each.setup, each.load
    return {
        "source": "a report",
        "gpu": setup.gpu.gpu,
        "gpu_count": setup.tp_size,
        "model": model_name(setup),
        "precision": _printed(each),
        "framework": "vLLM",
        "framework_version": "0.20.1",
        "tp": setup.tp_size,
        "isl": load.isl,
        "osl": load.osl,
        "concurrency": load.concurrency or "",
        "request_rate": load.rate_per_s or "",
        "num_prompts": len(each.is_ok),
    }


def _server(each: SimulatedRun) -> str:
    took, load = each.duration_s, each.load
    sent = len(each.is_ok) / float(each.start_s.max() - each.start_s.min())
    latencies = {"": each.e2el_s, "First Token ": each.ttft_s, "Time to Output Token ": each.tpot_s}
    stats = [
        line
        for name, values in latencies.items()
        for found in [each.good(values) * 1e9]
        for line in (
            f"Mean {name}latency (ns) : {found.mean():.0f}".replace("Token latency", "Token"),
            f"99.00 percentile {name.lower()}latency (ns) : {np.percentile(found, 99):.0f}".replace(
                "output token latency", "output token"
            ),
        )
    ]
    return "\n".join([
        *_summary("Server"),
        f"Completed samples per second    : {each.completed / took:.2f}",
        f"Completed tokens per second: {each.tokens_out / took:.2f}",
        "Result is : VALID", "  Performance constraints satisfied : Yes", "  Min duration satisfied : Yes",
        RULE, "Additional Stats", RULE, f"Scheduled samples per second : {sent:.2f}", *stats,
        RULE, "Test Parameters Used", RULE, f"target_qps : {load.rate_per_s}", "",
    ])  # fmt: skip


def _offline(each: SimulatedRun) -> str:
    took = each.good(each.e2el_s) * 1e9
    stats = {"Min": took.min(), "Max": took.max(), "Mean": took.mean()}
    stats |= {f"{q:.2f} percentile": np.percentile(took, q) for q in (50, 90, 95, 97, 99, 99.9)}
    return "\n".join([
        *_summary("Offline"),
        f"Samples per second: {each.completed / each.duration_s:.6g}",
        f"Tokens per second: {each.tokens_out / each.duration_s:.6g}",
        "Result is : VALID", "  Min duration satisfied : Yes", "  Min queries satisfied : Yes",
        "  Early stopping satisfied: Yes", "", RULE, "Additional Stats", RULE,
        *(f"{name} latency (ns) : {value:.0f}" for name, value in stats.items()),
        RULE, "Test Parameters Used", RULE, f"samples_per_query : {len(took)}", "target_qps : 38", "",
    ])  # fmt: skip


def _summary(scenario: str) -> list[str]:
    return [
        RULE,
        "MLPerf Results Summary",
        RULE,
        "SUT name : ExampleSUT",
        f"Scenario : {scenario}",
        "Mode : PerformanceOnly",
    ]
