"""llm-d's Benchmark Report v0.2.1, one report per measurement; its schema allows no other fields."""

import json
from collections.abc import Sequence
from typing import Any

from warehouse.exporters.exporter import Exporter
from warehouse.exporters.measurement import Measurement, known

VERSION = "0.2.1"
_LATENCIES = {
    "time_to_first_token": ("ttft", "ms"),
    "time_per_output_token": ("tpot", "ms/token"),
    "inter_token_latency": ("itl", "ms/token"),
    "request_latency": ("e2el", "ms"),
}
_SOURCES = {"random": "random", "shared-prefix": "random", "multi-turn": "random", "sharegpt": "sampled"}


def report_of(one: Measurement) -> dict[str, Any]:
    """The report of one measurement."""
    scenario = known({"load": _load(one), "stack": _stack(one)})
    performance = {
        "aggregate": known({"requests": _requests(one), "latency": _latency(one), "throughput": _rates(one)})
    }
    return known({"version": VERSION, "run": _run(one), "scenario": scenario}) | {
        "results": {"request_performance": performance}
    }


def lacking(one: Measurement) -> str | None:
    """The reason why the format cannot represent this measurement; None if it can."""
    return None if one["completed"] is not None and one["failed"] is not None else "the number of requests is unknown"


def files(measurements: Sequence[Measurement]) -> dict[str, str]:
    """One file per measurement: the schema holds one run."""
    return {
        f"{one['run_id'].replace('/', '-')}.json": json.dumps(report_of(one), indent=2) + "\n" for one in measurements
    }


def _run(one: Measurement) -> dict[str, Any]:
    times = (one["started_at"], one["ended_at"])
    start, end = (moment.isoformat() if moment else None for moment in times)
    # The duration is that of the measured window, as for the rates; start and end are those of the whole run.
    duration = f"PT{one['duration_s']!r}S" if one["duration_s"] is not None else None
    return known(
        {
            "uid": one["run_id"],
            "eid": one["scenario_id"],
            "pid": one["night"],
            "description": one["scenario"],
            "time": known({"start": start, "end": end, "duration": duration}),
        }
    )


def _load(one: Measurement) -> dict[str, Any] | None:
    """The load; None if a required field is unknown."""
    version = one["driver_version"] or one["nightbench_version"]
    if one["isl"] is None or one["driver"] is None or version is None:
        return None
    is_exact = one["prompts"] == "random" and one["prompt_form"] in (None, "tokens")
    lengths = {name: _length(one[column], is_fixed=is_exact) for name, column in _LENGTHS.items()}
    said = {
        "tool": one["driver"],
        "tool_version": version,
        "source": _SOURCES.get(one["prompts"] or "", "unknown"),
        **lengths,
        "rate_qps": one["request_rate_per_s_asked"],
        "concurrency": one["concurrency_asked"],
    }
    native = known(
        {"request_count": one["request_count"], "warmup_count": one["warmup_count"], "arrivals": one["arrivals"]}
    )
    return {
        "metadata": known({"cfg_id": one["scenario_id"]}),
        "standardized": known(said),
        "native": {"config": native},
    }


_LENGTHS = {"input_seq_len": "isl", "output_seq_len": "osl"}


def _length(tokens: int | None, *, is_fixed: bool) -> dict[str, Any] | None:
    return None if tokens is None else {"distribution": "fixed" if is_fixed else "other", "value": tokens}


def _stack(one: Measurement) -> list[dict[str, Any]]:
    """The server; on a CPU its accelerator is the CPU, with a count of 0.

    Empty if it is unknown, or if there are two, a prefill and a decode server: only the sum of their GPUs is known.
    """
    hardware = one.gpu if one["gpus"] else one["cpu_model"]
    if one["kv_connector"] is not None or hardware is None or one.engine_version is None or one["engine"] is None:
        return []
    said = {
        "kind": "inference_engine",
        "tool": one["engine"],
        "tool_version": one.engine_version,
        "role": "replica",
        "replicas": 1,
        "model": {"name": one["model"]},
        "accelerator": {"model": hardware, "count": one.gpu_count, "parallelism": one.parallel},
    }
    metadata = {"label": "server", "cfg_id": one["server_id"] or one["scenario_id"]}
    return [{"metadata": metadata, "standardized": said, "native": {"args": one.flags}}]


def _requests(one: Measurement) -> dict[str, Any]:
    found = {"total": one["completed"] + one["failed"], "failures": one["failed"]}
    lengths = {"input_length": one["total_input_tokens"], "output_length": one["total_output_tokens"]}
    means = {name: {"units": "count", "mean": total / one["completed"]} for name, total in lengths.items()
             if total is not None and one["completed"]}  # fmt: skip
    return found | means


def _latency(one: Measurement) -> dict[str, Any]:
    return known({name: _spread(one.latencies_ms(metric), units) for name, (metric, units) in _LATENCIES.items()})


def _spread(statistics: dict[str, float], units: str) -> dict[str, Any] | None:
    if "mean" not in statistics:  # required by the schema
        return None
    return {"units": units, **{"p99p9" if name == "p999" else name: value for name, value in statistics.items()}}


def _rates(one: Measurement) -> dict[str, Any]:
    rates = {
        "input_token_rate": (one.input_tok_per_s, "tokens/s"),
        "output_token_rate": (one["output_throughput_tok_per_s"], "tokens/s"),
        "total_token_rate": (one.total_tok_per_s, "tokens/s"),
        "request_rate": (one["request_throughput_per_s"], "queries/s"),
    }
    return {name: {"units": units, "mean": value} for name, (value, units) in rates.items() if value is not None}


EXPORTER = Exporter("llm-d", files, lacking)
