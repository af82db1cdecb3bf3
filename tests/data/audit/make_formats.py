"""Writes the files of other tools that contradict themselves, each a good twin of its format spoiled by one thing.

`python -m tests.data.audit.make_formats` writes them anew; the same seed writes the same bytes.
"""

import json
from pathlib import Path
from typing import Any

from tests.data.formats.aiperf import make as aiperf
from tests.data.formats.closed_loop import closed_loop
from tests.data.formats.inference_perf import make as inference_perf
from tests.data.formats.inferencex import make as inferencex
from tests.data.formats.nvidia import make as nvidia

HERE = Path(__file__).parent
CLIENT, SERVER = "stage_0_lifecycle_metrics", "stage_0_prometheus_metrics"
Result = dict[str, Any]
DISTINCT = "prefix_caching = false\nhas_distinct_prompts = true\n"


def _text(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"


def _aiperf() -> dict[str, str]:
    run = closed_loop(seed=7)

    def spoiled(**values: Any) -> str:
        return _text(aiperf.aggregate(run) | values)

    def asking(**means: int) -> str:
        result = aiperf.aggregate(run)
        for name, mean in means.items():
            result["input_config"]["input"]["prompt"][name]["mean"] = mean
        return _text(result)

    metrics_at = ["http://host:9400/metrics"]
    empty = {"summary": {"endpoints_configured": metrics_at, "endpoints_successful": metrics_at}, "endpoints": {}}
    usage = aiperf.metric("tokens", [run.output_tokens.sum() * 1.3])
    short = [closed_loop(seed=seed, requests=40) for seed in (7, 8, 9)]
    duration = aiperf.over([each.duration_s for each in short], "sec")
    repeats = aiperf.several(short)
    return {
        "cancelled.json": spoiled(was_cancelled=True),
        "osl_not_reached.json": asking(output_tokens=160),
        "isl_mismatch.json": asking(input_tokens=640),
        "telemetry_empty.json": spoiled(telemetry_data=empty),
        "unreadable_value.json": spoiled(was_cancelled="perhaps"),
        "usage_mismatch.json": spoiled(total_usage_completion_tokens=usage),
        "bias_guard.json": _text(repeats | {"metrics": {**repeats["metrics"], "benchmark_duration_avg": duration}}),
        **_aiperf_pairs(),
    }


def _aiperf_pairs() -> dict[str, str]:
    """Aggregates that do not follow from the records beside them."""
    run = closed_loop(seed=7, requests=160, osl=16)
    spoiled = {
        "stat_mismatch": {"time_to_first_token": aiperf.metric("ms", run.ttft_s * 0.9e3)},
        "sum_mismatch": {"total_osl": aiperf.metric("tokens", [run.output_tokens.sum() + 16])},
    }
    found = {}
    for code, values in spoiled.items():
        found[f"{code}-aiperf/profile_export_aiperf.json"] = _text(aiperf.aggregate(run) | values)
        found[f"{code}-aiperf/profile_export.jsonl"] = aiperf.records(run, chunks=0)
    return found


def _inference_perf() -> dict[str, str]:
    run = closed_loop(seed=11)
    client, late = inference_perf.client(run), inference_perf.client(run)
    late["load_summary"]["schedule_delay"]["p99"] = 0.03
    spoiled: dict[str, Result] = {
        "client_server_mismatch": {"output_len": {"mean": 160.0}},
        "client_server_latency": {"time_to_first_token": {"mean": float(run.ttft_s.mean()) * 2}},
        "client_server_latency-tpot": {"time_per_output_token": {"mean": float(run.tpot_s.mean()) * 1.4}},
        "prefix_cache_contamination": {"prefix_cache_hit_percent": {"mean": 37.0}},
        "preempted": {"num_preemptions_total": 6.0},
    }
    found = {"client_bound.json": _text(late)}
    for stem, values in spoiled.items():
        server = inference_perf.server(run)
        name = f"{stem}-inference-perf" if "-" not in stem else stem
        found[f"{name}/{CLIENT}.json"] = _text(client)
        found[f"{name}/{SERVER}.json"] = _text({"successes": server["successes"] | values})
    found[f"prefix_cache_contamination-inference-perf/{CLIENT}.context.toml"] = DISTINCT
    return found


def _tables() -> dict[str, str]:
    rate = "41.5 output tokens/sec"
    return {
        "failed_not_zero.csv": nvidia.table().replace(rate, "0 output tokens/sec"),
        "unit_unknown.csv": nvidia.table().replace(rate, "41.5 output words/sec"),
    }


def files() -> dict[str, str]:
    """The text of every file by its path in this folder."""
    aggregated = json.loads(inferencex.files()["agg-3.json"])
    scores = {"quality_below.json": inferencex.files()["agg_eval_all.json"]}
    return {
        **_aiperf(),
        **_inference_perf(),
        **_tables(),
        **scores,
        "meaningless_metric.json": _text(aggregated | {"std_intvty": 1.5}),
        "quality_below.context.toml": "slo_quality = 0.95\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text, encoding="utf-8")
