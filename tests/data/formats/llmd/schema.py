"""Our own schema of llm-d's Benchmark Report v0.2.1: the part that we write, closed as the published one is."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FREE: Schema = {"type": "object"}


def closed(needed: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object without other keys."""
    properties = {**needed, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}


def each(kind: Schema, *names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, kind)


PERCENTILES = ("p0p1", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99p9")
STATISTIC = closed({"units": TEXT, "mean": NUMBER}, each(NUMBER, "min", "max", "stddev", *PERCENTILES))
NATIVE = closed({}, each(FREE, "args", "envars", "config"))
LENGTH = closed(
    {"distribution": {"enum": ["fixed", "gaussian", "uniform", "other"]}, "value": NUMBER},
    {"std_dev": NUMBER, "min": COUNT, "max": COUNT},
)
LOAD = closed(
    {
        "metadata": closed({}, each(TEXT, "schema_version", "cfg_id", "description")),
        "standardized": closed(
            {
                **each(TEXT, "tool", "tool_version"),
                "source": {"enum": ["random", "sampled", "unknown"]},
                "input_seq_len": LENGTH,
            },
            {"output_seq_len": LENGTH, "stage": COUNT, "rate_qps": NUMBER, "concurrency": COUNT},
        ),
        "native": NATIVE,
    }
)
ENGINE = closed(
    {
        **each(TEXT, "kind", "tool", "tool_version"),
        "role": {"enum": ["replica", "prefill", "decode"]},
        "replicas": COUNT,
        "model": closed({"name": TEXT}),
        "accelerator": closed(
            {"model": TEXT, "count": COUNT, "parallelism": closed({}, each(COUNT, "tp", "pp", "dp", "ep"))}
        ),
    }
)
COMPONENT = closed(
    {
        "metadata": closed(each(TEXT, "label", "cfg_id"), each(TEXT, "schema_version", "description")),
        "standardized": ENGINE,
        "native": NATIVE,
    }
)
AGGREGATE = closed(
    {},
    {
        "requests": closed(
            {"total": COUNT},
            {**each(COUNT, "failures", "incomplete"), **each(STATISTIC, "input_length", "output_length")},
        ),
        "latency": closed(
            {},
            each(
                STATISTIC,
                "time_to_first_token",
                "time_per_output_token",
                "normalized_time_per_output_token",
                "inter_token_latency",
                "request_latency",
            ),
        ),
        "throughput": closed(
            {}, each(STATISTIC, "input_token_rate", "output_token_rate", "total_token_rate", "request_rate")
        ),
    },
)
SCHEMA = closed(
    {
        "run": closed(
            {"uid": TEXT},
            {
                **each(TEXT, "eid", "cid", "pid", "user", "description"),
                "keywords": {"type": "array", "items": TEXT},
                "time": closed({}, each(TEXT, "start", "end", "duration")),
            },
        ),
        "results": closed({}, {"request_performance": closed({}, {"aggregate": AGGREGATE}), "observability": FREE}),
    },
    {"version": TEXT, "scenario": closed({}, {"load": LOAD, "stack": {"type": "array", "items": COMPONENT}})},
)
