"""Every column of the lake, once: its type, unit, meaning and bounds.

The Parquet schemas, the typed views, the reference page and the bounds checks come from here. `night` is the partition
folder, so it is declared but not stored in a file. `python -m warehouse.schema.columns` rewrites the page
docs/reference/columns.md.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from bench.audit.rules import NIGHT_RULES, NOT_CHECKABLE, Rule
from bench.audit.rules.wording import told_bounds, told_range
from bench.engines.vllm import FINISH_REASONS, SAMPLED
from bench.metrics import PERCENTILE_MIN_SAMPLES, percentile_name
from warehouse.schema.claim_columns import CLAIM_COLUMNS, CLAIM_IDS, CLAIM_REQUEST_COLUMNS
from warehouse.schema.column import WITHDRAWN, Column

Table = Literal[
    "measurements",
    "requests",
    "telemetry",
    "server_samples",
    "findings",
    "leases",
    "attempts",
    "stages",
    "quality_scores",
    "claims",
    "claim_requests",
    "claim_findings",
]
TABLES: tuple[Table, ...] = get_args(Table)
PARTITION = "night"

_IDS = (
    Column("night", "text", "the night it was measured in; the lake's partition", nullable=False),
    Column("run_id", "text", "night/scenario_id/repeat", nullable=False),
    Column("scenario_id", "text", "hash of everything that can move a number: equal means comparable", nullable=False),
    Column("repeat", "integer", "which try at the scenario, from 0", nullable=False, low=0),
)

_LABELS = (
    Column("suite", "text", "name of the suite"),
    Column("scenario", "text", "label of the scenario in its suite"),
    Column("server_id", "text", "hash of what the server was started with"),
    Column("order", "integer", "place in the night, from 0", low=0),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("stage", "text", "where a failed run ended; `load` when its folder could not be read"),
    Column("reason", "text", "why a run failed or was not run"),
    Column("verdict", "text", "accepted, suspect, rejected, failed or not-run", nullable=False),
    WITHDRAWN,
)

_ASKED = (
    Column("model", "text", "name the model is served under"),
    Column("model_source", "text", "where the weights come from"),
    Column("precision", "text", "of the weights as served"),
    Column("engine", "text", "server software"),
    Column("engine_version_asked", "text", "its version as the suite asks for"),
    Column("engine_flags", "texts", "its extra arguments, in order"),
    Column("max_model_len", "integer", "context length asked for", "tokens", low=1),
    Column("prompts", "text", "kind of prompt: random, shared-prefix, multi-turn, images or sharegpt"),
    Column(
        "prompt_form",
        "text",
        "how prompts are sent: tokens (of exact length), text or chat (of about the length asked)",
    ),
    Column("isl", "integer", "input length asked for", "tokens", low=1),
    Column("osl", "integer", "output length asked for", "tokens", low=1),
    Column("concurrency_asked", "integer", "requests kept in flight (closed loop)", low=1),
    Column("request_rate_per_s_asked", "number", "arrivals offered (open loop)", "1/s", low=0),
    Column("arrivals", "text", "closed, constant, poisson, gamma or trace"),
    Column("burstiness_asked", "number", "shape of gamma gaps: 1 is Poisson, less comes in bursts", low=0),
    Column("driver", "text", "load driver: meter, vllm-bench or vllm-rs-bench"),
    Column("request_count", "integer", "requests to measure", low=1),
    Column("warmup_count", "integer", "requests sent and thrown away before", low=0),
    Column("min_duration_s", "number", "window this suite asks for", "s", low=0),
    Column("min_requests_per_slot", "number", "requests a concurrency slot this suite asks for", low=0),
    Column("lm_eval_tasks", "texts", "tasks of lm-eval that this suite asks each server; NULL where it asks none"),
)

_FOUND = (
    Column("engine_version_found", "text", "version the running server gave"),
    Column("engine_build", "text", "build of the running server"),
    Column("model_revision", "text", "revision of the weights on the host"),
    Column("model_sha256", "text", "hash of the weights on the host"),
    Column("driver_version", "text", "version of the load driver"),
    Column("host", "text", "name of the machine"),
    Column("kernel", "text", "its kernel"),
    Column("cpu_model", "text", "its processor"),
    Column("cpu_count", "integer", "its logical processors", low=1),
    Column("gpus", "texts", "its GPUs; empty where it has none"),
    Column("gpu_driver", "text", "version of its GPU driver"),
    Column("image_digest", "text", "digest of the container image"),
    Column("kv_cache_tokens", "integer", "room in the KV cache as the server's log says", "tokens", low=0),
    Column("load_average_before", "number", "load average of one minute, before the load", low=0),
    Column("load_average_after", "number", "load average of one minute, after the load", low=0),
    Column("steal_share", "number", "CPU time taken by the hypervisor", "share", low=0, high=1),
    Column(
        "cold_start_s",
        "number",
        "engine started to ready: its log line, its health check and a first real completion",
        "s",
        low=0,
    ),
)

_METRICS = {
    "ttft": "time to first token: request sent to first token",
    "tpot": "mean time per output token after the first, by request",
    "itl": "time between tokens, of all requests: a gap before k tokens counts as k of a k-th",
    "itl_event": "gaps between neighbouring token events, of all requests",
    "e2el": "end-to-end latency: request sent to last token",
}
STATISTICS = ("mean", *(percentile_name(q) for q in PERCENTILE_MIN_SAMPLES))


def _latencies() -> Iterator[Column]:
    for metric, meaning in _METRICS.items():
        for statistic in STATISTICS:
            yield Column(f"{metric}_{statistic}_ms", "number", f"{statistic} of {meaning}", "ms", low=0)
        yield Column(f"{metric}_sample_count", "integer", f"values behind the statistics of `{metric}`", low=0)


def _intervals() -> Iterator[Column]:
    for name, unit in (("ttft_p99", "ms"), ("itl_p99", "ms"), ("output_throughput", "tok_per_s")):
        for end in ("low", "high"):
            said = f"{end}er end of the 95 % interval of `{name}_{unit}`, resampled by request"
            yield Column(f"{name}_{end}_{unit}", "number", said, unit.replace("_per_", "/"), low=0)


# Read by warehouse/judging/answer_history.py out of the nights before.
_ANSWERS = (
    Column("logprob_passage", "text", "version of the fixed passage and prompts that the server was asked"),
    Column("logprob_token_count", "integer", "tokens of the passage that were weighed", "tokens", low=1),
    *(
        Column(
            f"logprob_mean_{when}",
            "number",
            f"mean log-probability of the passage's tokens {when} the load",
            "nats",
            low=-1000,  # further down than any number: the server gave none
            high=0,
        )
        for when in ("before", "after")
    ),
    Column("logprob_mean_earlier", "number", "median of that over the nights that it was compared with", "nats"),
    Column("earlier_night_count", "integer", "how many nights these are", low=0),
    Column("greedy_fingerprint_before", "text", "hash of the greedy tokens of the fixed prompts, before the load"),
    Column("greedy_fingerprint_after", "text", "hash of them after the load"),
    Column("greedy_tokens", "counts", "these tokens before the load: the ids after each prompt, one after the other"),
    Column(
        "quality_id", "text", "hash of what decides over answers (weights, precision, flags): equal, so must they be"
    ),
    Column("quality_not_checked", "text", "why answers before and after the load were not compared"),
    Column("quality_not_compared", "text", "why the passage was not compared with earlier nights"),
    Column("greedy_not_compared", "text", "why the greedy tokens were not compared with an earlier night"),
    Column("lm_eval_worst", "text", "the score that fell most against earlier nights, and from what"),
    Column("lm_eval_not_compared", "text", "why a score of lm-eval was not compared with earlier nights"),
)

_MEASURED = (
    Column("completed", "integer", "requests answered", low=0),
    Column("failed", "integer", "requests that failed", low=0),
    Column("duration_s", "number", "first send to last token of the answered requests", "s", low=0),
    Column("total_input_tokens", "integer", "prompt tokens of the answered requests", "tokens", low=0),
    Column("total_output_tokens", "integer", "output tokens of the answered requests", "tokens", low=0),
    Column("request_throughput_per_s", "number", "answered requests over the window", "1/s", low=0),
    Column("output_throughput_tok_per_s", "number", "their output tokens over the window", "tok/s", low=0),
    Column("concurrency_achieved", "number", "mean requests in flight, by Little's law", low=0),
    *_latencies(),
    Column("percentile_estimator", "text", "how all percentiles are taken: see METHOD.md"),
    *_intervals(),
    Column("tokens_per_event", "number", "mean tokens of a stream event", low=0),
    Column(
        "steady_begin_s", "number", "begin of the steady window on the client's clock; NULL where there is none", "s"
    ),
    Column("steady_duration_s", "number", "length of the steady window", "s", low=0),
    Column("steady_output_throughput_tok_per_s", "number", "output tokens that arrived in it, over it", "tok/s", low=0),
    Column("steady_slope_share", "number", "change of throughput from its begin to its end, over its mean"),
    Column("steady_slope_se_share", "number", "standard error of that change", low=0),
    Column("ramp_count", "integer", "requests sent before the steady window", low=0),
    Column("steady_count", "integer", "requests sent and ended inside it", low=0),
    Column("drain_count", "integer", "requests sent inside it or later and ended after it", low=0),
    Column("live_mean", "number", "requests in flight in the steady window, by the client's stamps", low=0),
    Column(
        "server_live_mean", "number", "the same by the server: running and waiting, mean of the samples in it", low=0
    ),
    Column("server_live_se", "number", "standard error of that mean", low=0),
    Column("server_live_sample_count", "integer", "samples behind that mean", low=0),
    Column("server_blind_live", "number", "live requests that the server's gauges cannot show on average", low=0),
    Column("scrape_took_p50_ms", "number", "median time the server took to tell its counters", "ms", low=0),
    Column(
        "ttft_over_server_p50_ms", "number", "median of TTFT less the server's own queue and first token time", "ms"
    ),
    Column("dispatch_delay_p99_ms", "number", "p99 of due to sent (open loop)", "ms"),
    Column("slot_refill_p99_ms", "number", "p99 of slot free to sent (closed loop)", "ms"),
    # No bounds on counters: one that fell is judged by server_restarted.
    Column("server_generation_tokens", "integer", "how far the server's count of output tokens moved", "tokens"),
    Column("server_prompt_tokens", "integer", "how far the server's count of prompt tokens moved", "tokens"),
    Column("server_preemptions", "integer", "how far the server's count of preemptions moved"),
    *(
        Column(f"server_finished_{why}", "integer", f"requests the server says it finished with `{why}`")
        for why in FINISH_REASONS
    ),
    Column("server_prefix_cache_queries", "integer", "prompt tokens looked up in the prefix cache", "tokens"),
    Column("server_prefix_cache_hits", "integer", "prompt tokens found in the prefix cache", "tokens"),
    Column("client_lag_p99_ms", "number", "p99 of the client's reading after the kernel had the data", "ms"),
    Column("kernel_stamp_share", "number", "reads with a kernel time stamp", "share", low=0, high=1),
    *_ANSWERS,
    Column("usd_per_mtok_output", "number", "price of a million output tokens at this throughput", "USD", low=0),
)

_PRICE = (Column("usd_per_hour", "number", "price of the machine", "USD/h", low=0),)

_LINEAGE = (
    Column("started_at", "moment", "when the run began"),
    Column("ended_at", "moment", "when the run ended"),
    Column("method_version", "integer", "see METHOD.md: differs where the numbers do", low=1),
    Column("record_version", "integer", "version of record.json", low=1),
    Column("nightbench_version", "text", "version of this code that measured"),
    Column("git_commit", "text", "commit of this code that measured"),
    Column("calibration_id", "text", "calibration of the load client in that night; NULL where there is none"),
    Column("not_calibrated", "text", "why there is none"),
)


def _evidence_column(rule: Rule) -> Column:
    return Column(rule.column, "number", f"evidence of `{rule.code}` ({rule.family}): {told_bounds(rule)}")


_EVIDENCE = (
    *(_evidence_column(rule) for rule in NIGHT_RULES),
    Column(NOT_CHECKABLE, "number", "how many required rules lack an input", low=0),
)

# Written for measured runs only; NULL in every other row.
MEASURED_NAMES = tuple(column.name for column in (*_MEASURED, *_EVIDENCE))

_REQUESTS = (
    *_IDS,
    Column("request_index", "integer", "place among the measured requests", nullable=False, low=0),
    Column("outcome", "text", "ok, or the class of the failure", nullable=False),
    Column("error", "text", "the failure in words"),
    Column("intended_s", "number", "when it was due, on the client's clock", "s"),
    Column("send_s", "number", "when it was sent, on the client's clock", "s"),
    Column("ttft_ms", "number", "request sent to first token", "ms"),
    Column("tpot_ms", "number", "mean time per output token after the first; NULL for a one-token answer", "ms"),
    Column("e2el_ms", "number", "request sent to last token", "ms"),
    Column("input_tokens", "integer", "prompt tokens as counted by the server", "tokens"),
    Column("output_tokens", "integer", "output tokens as counted by the server", "tokens"),
    Column("itl_ms", "gaps", "gaps between neighbouring token events; NULL for a failed request", "ms"),
    Column("itl_tokens", "counts", "tokens of the event that ends each gap; NULL where unknown", "tokens"),
    Column("window", "text", "ramp, steady or drain; NULL where there is no steady window"),
    Column("cached_tokens", "integer", "prompt tokens out of the server's prefix cache, where it tells", "tokens"),
    Column("server_ttft_ms", "number", "the server's own: scheduled to first token", "ms"),
    Column("server_queue_ms", "number", "the server's own: queued to scheduled", "ms"),
    Column("server_generation_ms", "number", "the server's own: first token to last", "ms"),
    Column("server_mean_itl_ms", "number", "the server's own: that over the tokens after the first", "ms"),
)

_TELEMETRY = (
    *_IDS,
    Column("at", "moment", "when it was sampled"),
    Column("cpu_share", "number", "processor time in use", "share"),
    Column("load_average_1m", "number", "load average of one minute"),
    Column("memory_used_bytes", "integer", "memory in use", "bytes"),
    Column("steal_share", "number", "CPU time taken by the hypervisor", "share"),
    Column("engine_rss_bytes", "integer", "resident memory of the engine's processes", "bytes"),
    Column("engine_cpu_s", "number", "processor time of the engine's processes so far", "s"),
)

_SERVER_SAMPLES = (
    *_IDS,
    Column("at", "moment", "when it was asked"),
    Column("at_s", "number", "the middle of asking and answer on the client's clock; NULL where it has none", "s"),
    Column("took_ms", "number", "how long the server took to answer", "ms", low=0),
    Column("error", "text", "why the server gave no counters; all of them are NULL then"),
    *(Column(ours, "number", f"`vllm:{theirs}`, summed over its labels") for ours, theirs in SAMPLED.items()),
)

_FINDING = (
    Column("code", "text", "the rule", nullable=False),
    Column("family", "text", "its kind: arithmetic, client-server, ...", nullable=False),
    Column("severity", "text", "critical, warning or info", nullable=False),
    Column("scope", "text", "row, metric or group: what it is about", nullable=False),
    Column("status", "text", "PASS, WARN, FAIL or NOT-CHECKABLE", nullable=False),
    Column("observed", "number", "the evidence"),
    Column("passing_low", "number", "lowest value that passes"),
    Column("passing_high", "number", "highest value that passes"),
    Column("tolerated_low", "number", "lowest value that does not fail"),
    Column("tolerated_high", "number", "highest value that does not fail"),
    Column("message", "text", "what it says, as a sentence", nullable=False),
)
_FINDINGS = (*_IDS, *_FINDING)

_LEASES = (
    _IDS[0],
    Column("lease_id", "text", "our name for the rental", nullable=False),
    Column("cloud", "text", "who rents it out", nullable=False),
    Column("machine_id", "text", "the cloud's name for the machine", nullable=False),
    *_PRICE,
    Column("kind", "text", "the cloud's name for this kind of machine; NULL of leases from before it was kept"),
    Column("region", "text", "where it stood; NULL where the cloud has no regions"),
    Column("is_spot", "flag", "whether it was paid at a spot price, and could be reclaimed"),
    Column("attempt_count", "integer", "tries at renting it", low=0),
    Column("rented_at", "moment", "when paying began"),
    Column("released_at", "moment", "when paying ended; NULL while it is not known to have"),
    Column("usd", "number", "what it cost", "USD", low=0),
)

_ATTEMPTS = (
    _IDS[0],
    Column("lease_id", "text", "the rental that it was for", nullable=False),
    Column("attempt", "integer", "which try, from 1", nullable=False, low=1),
    Column("started_at", "moment", "when it was asked for", nullable=False),
    Column("cloud", "text", "who was asked", nullable=False),
    Column("kind", "text", "the cloud's name for this kind of machine", nullable=False),
    Column("region", "text", "where; NULL where the cloud has no regions"),
    Column("is_spot", "flag", "whether at a spot price", nullable=False),
    *_PRICE,
    Column("name", "text", "our name for the machine of this try", nullable=False),
    Column(
        "outcome",
        "text",
        "rented, no-capacity, over-limit, refused, vanished, stuck or unanswered",
    ),
    Column("reason", "text", "in the cloud's words, or what was waited for in vain"),
    Column("machine_id", "text", "the cloud's name for the machine that came of it"),
)

_STAGES = (
    _IDS[0],
    Column("lease_id", "text", "the rental that it is a part of", nullable=False),
    Column("stage", "text", "boot, software, model, calibrate, serve, measure, ..., release", nullable=False),
    Column("run_id", "text", "the run that it belongs to; NULL of a stage of the whole machine"),
    Column("started_at", "moment", "when it began", nullable=False),
    Column("ended_at", "moment", "when it ended; NULL where it is not known to have"),
    Column("duration_s", "number", "from begin to end", "s", low=0),
    Column(
        "usd", "number", "its part of what the lease cost; time that stages share is split among them", "USD", low=0
    ),
)

_SCORES = (
    _IDS[0],
    Column("suite", "text", "name of the suite", nullable=False),
    Column("server_id", "text", "hash of what the server was started with", nullable=False),
    Column("task", "text", "the task that was asked, or a part of it", nullable=False),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("reason", "text", "why there is no score"),
    Column("metric", "text", "what was counted; NULL where there is no score"),
    Column("filter", "text", "how the harness read the answers"),
    Column("value", "number", "the score, in the metric's own unit"),
    Column("stderr", "number", "its standard error as the harness gives it", low=0),
    Column("is_higher_better", "flag", "whether more is better"),
    Column("sample_count", "integer", "questions asked", low=0),
    Column("sample_total", "integer", "questions that the task has", low=0),
    Column("limit", "integer", "questions asked at most, as the suite says; NULL for all", low=1),
    Column("few_shot", "integer", "examples before each question", low=0),
    Column("task_version", "text", "the task's version as its file says"),
    Column("harness_version", "text", "version of lm-eval"),
    Column("folder_sha256", "text", "hash of the suite's own folder of tasks; NULL where it has none"),
    Column("quality_id", "text", "as of the measurements of this server; NULL where none was measured"),
    Column("value_earlier", "number", "median of that score over the nights that it was compared with"),
    Column("stderr_earlier", "number", "median of its standard errors there", low=0),
    Column("earlier_night_count", "integer", "how many nights these are", low=0),
    Column("fall_se", "number", "how much worse the score is, in standard errors of both"),
    Column("not_compared", "text", "why it was not compared with earlier nights"),
    Column("started_at", "moment", "when the server was asked its first task"),
    Column("duration_s", "number", "how long the task took", "s", low=0),
)

COLUMNS: dict[Table, tuple[Column, ...]] = {
    "measurements": (*_IDS, *_LABELS, *_ASKED, *_FOUND, *_MEASURED, *_PRICE, *_EVIDENCE, *_LINEAGE),
    "requests": _REQUESTS,
    "telemetry": _TELEMETRY,
    "server_samples": _SERVER_SAMPLES,
    "findings": _FINDINGS,
    "leases": _LEASES,
    "attempts": _ATTEMPTS,
    "stages": _STAGES,
    "quality_scores": _SCORES,
    "claims": CLAIM_COLUMNS,
    "claim_requests": CLAIM_REQUEST_COLUMNS,
    "claim_findings": (*CLAIM_IDS, *_FINDING),
}


def withdrawn_columns(table: Table, row: Mapping[str, Any], beginnings: tuple[str, ...]) -> list[str]:
    """The columns of a row that begin so and hold a number: what the views for comparison leave out of it."""
    return [
        column.name
        for column in COLUMNS[table]
        if column.is_withdrawable and column.name.startswith(beginnings) and row.get(column.name) is not None
    ]


def arrow_schema(table: Table) -> Any:
    """The schema of a table's Parquet files: every column but the partition."""
    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
        "texts": pa.list_(pa.string()),
        "gaps": pa.list_(pa.float32()),
        "counts": pa.list_(pa.int32()),
    }
    return pa.schema(
        [
            pa.field(column.name, types[column.type], nullable=column.nullable)
            for column in COLUMNS[table]
            if column.name != PARTITION
        ]
    )


def reference_markdown() -> str:
    """The reference page of all columns."""
    title = "# Columns\n\nGenerated by `python -m warehouse.schema.columns`; do not edit.\n\n"
    parts = [title, "Missing is NULL, never 0. The lake is `lake/<table>/night=<night>/part-0.parquet`.\n"]
    for table in TABLES:
        head = f"\n## {table}\n\n| column | type | unit | possible | meaning |\n|---|---|---|---|---|\n"
        parts.append(head + "".join(_reference_row(column) for column in COLUMNS[table]))
    return "".join(parts)


def _reference_row(column: Column) -> str:
    possible = "" if column.low is column.high is None else told_range((column.low, column.high))
    kind = column.duckdb_type if column.nullable else f"{column.duckdb_type}, never NULL"
    return f"| `{column.name}` | {kind} | {column.unit or ''} | {possible} | {column.meaning} |\n"


def outside_bounds(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of a measurement whose value is not possible at all; NULL is always possible."""
    return tuple(column.name for column in COLUMNS["measurements"] if not _is_possible(column, row.get(column.name)))


def _is_possible(column: Column, value: Any) -> bool:
    if value is None or column.low is column.high is None:
        return True
    return (column.low is None or value >= column.low) and (column.high is None or value <= column.high)


def main() -> None:
    """Rewrite docs/reference/columns.md."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "columns.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(reference_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
