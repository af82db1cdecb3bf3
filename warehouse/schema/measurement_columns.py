"""The columns of `measurements`: labels, configuration as requested and as found, evidence and lineage."""

from bench.audit.rules import NIGHT_RULES, NOT_CHECKABLE, Rule
from bench.audit.rules.wording import told_bounds
from warehouse.schema.column import Column
from warehouse.schema.metric_columns import METRIC_COLUMNS
from warehouse.schema.shared_columns import IDS, PRICE, WITHDRAWN

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


EVIDENCE_COLUMNS = (
    *(_evidence_column(rule) for rule in NIGHT_RULES),
    Column(NOT_CHECKABLE, "number", "how many required rules lack an input", low=0),
)

MEASUREMENT_COLUMNS = (*IDS, *_LABELS, *_ASKED, *_FOUND, *METRIC_COLUMNS, *PRICE, *EVIDENCE_COLUMNS, *_LINEAGE)
