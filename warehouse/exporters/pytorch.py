"""PyTorch's benchmark records, version 3: one metric of one measurement each.

The table `oss_ci_benchmark_v3` of its dashboards has whole numbers as ids; night and run are in the arguments as text.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from warehouse.exporters.exporter import Exporter
from warehouse.exporters.measurement import Measurement, known

_RATES = {
    "request_throughput_per_s": "requests_per_second",
    "output_throughput_tok_per_s": "output_tokens_per_second",
}


def records_of(one: Measurement) -> Iterator[dict[str, Any]]:
    """One record per known number; model, machine and commit are the same in all."""
    for name, value, unit in _numbers(one):
        metric = {"name": name, "benchmark_values": [value], "extra_info": {"unit": unit}}
        yield {"benchmark": _benchmark(one), "model": _model(one), "metric": metric, **_lineage(one)}


def files(measurements: Sequence[Measurement]) -> dict[str, str]:
    """One list of records."""
    return {"records.json": json.dumps([record for one in measurements for record in records_of(one)], indent=2) + "\n"}


def _numbers(one: Measurement) -> Iterator[tuple[str, float, str]]:
    rates = {name: one[column] for column, name in _RATES.items()} | {"tokens_per_second": one.total_tok_per_s}
    yield from ((name, value, "1/s") for name, value in rates.items() if value is not None)
    for metric in ("ttft", "tpot", "itl", "e2el"):
        for statistic, value in one.latencies_ms(metric).items():
            yield f"{'median' if statistic == 'p50' else statistic}_{metric}_ms", value, "ms"


def _benchmark(one: Measurement) -> dict[str, Any]:
    args = {
        "model": one["model"],
        "night": one["night"],
        "run_id": one["run_id"],
        "scenario": one["scenario"],
        "input_len": one["isl"],
        "output_len": one["osl"],
        "max_concurrency": one["concurrency_asked"],
        "request_rate": one["request_rate_per_s_asked"],
        "num_prompts": one["request_count"],
        "scenario_id": one["scenario_id"],
        "client": one["driver"],
        **{f"{name}_size": size for name, size in one.parallel.items()},
    }
    return known(
        {"name": "nightbench", "mode": "inference", "dtype": one["precision"], "extra_info": {"args": known(args)}}
    )


def _model(one: Measurement) -> dict[str, Any]:
    extra = known({"revision": one["model_revision"], "engine": one["engine"], "engine_version": one.engine_version})
    return known({"name": one["model"], "type": "serving", "extra_info": extra})


def _lineage(one: Measurement) -> dict[str, Any]:
    started = one["started_at"]
    runner = known(
        {
            "name": one["host"],
            "type": one.gpu or one["cpu_model"],
            "cpu_info": one["cpu_model"],
            "gpu_info": one.gpu,
            "gpu_count": one.gpu_count,
        }
    )
    return known(
        {
            "timestamp": int(started.timestamp()) if started else None,
            "schema_version": "v3",
            "name": one["suite"] or "nightbench",
            "repo": "nightbench",
            "head_sha": one["git_commit"],
            "workflow_id": _number_of(one["night"]),
            "run_attempt": one["repeat"],
            "job_id": _number_of(one["run_id"]),
            "runners": [runner],
        }
    )


def _number_of(text: str) -> int:
    """The same whole number for the same text, of 48 bits: JSON readers keep all of its digits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


EXPORTER = Exporter("pytorch", files)
