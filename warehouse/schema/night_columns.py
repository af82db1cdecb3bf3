"""The columns of the small tables of a night: canary, quality_scores, search_probes and command_metrics."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

# one row per test of a canary
CANARY_COLUMNS = (
    IDS[0],
    Column("lease_id", "text", "id of the lease", nullable=False),
    Column("position", "text", "before the first server of the lease, or after its last", nullable=False),
    Column("started_at", "moment", "start of the canary", nullable=False),
    Column("duration_s", "number", "duration of the canary", "s", low=0),
    Column("torch_version", "text", "version of torch in the engine's environment; NULL if it was not imported"),
    Column("test", "text", "what was measured; NULL in the row of a canary that did not run to its end"),
    Column("device", "integer", "index of the GPU; NULL for the CPU, the disk, and a test of all GPUs", low=0),
    Column("peer", "integer", "index of the GPU that a link leads to", low=0),
    Column("gpu", "text", "name of the GPU as torch has it"),
    Column("value", "number", "what was reached, in `unit`; NULL with a `reason`", low=0),
    Column("unit", "text", "GB/s or TFLOP/s"),
    Column("peak", "number", "peak of this GPU in the catalogue, in `unit`; NULL if it has none", low=0),
    Column("share_of_peak", "number", "value over peak", "share", low=0),
    Column("floor", "number", "floor of this GPU, in `unit`; NULL if it has none", low=0),
    Column(
        "floor_night_count",
        "integer",
        "number of nights on this kind of machine that the floor is from; NULL if it is from catalog/canary_floors.csv",
        low=1,
    ),
    Column("is_floor_verified", "flag", "whether the floor was measured on healthy machines"),
    Column("over_floor", "number", "value over floor; below 1 the machine is unfit", low=0),
    Column("reason", "text", "why the test has no value, or why the canary did not run to its end"),
    Column("unfit", "text", "why the machine was not used"),
)


# one row per score of an lm-eval task
SCORE_COLUMNS = (
    IDS[0],
    Column("suite", "text", "name of the suite", nullable=False),
    Column("server_id", "text", "hash of the settings that the server was started with", nullable=False),
    Column("task", "text", "name of the task, or of a subtask", nullable=False),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("reason", "text", "reason why there is no score"),
    Column("metric", "text", "name of the metric; NULL without a score"),
    Column("filter", "text", "filter that the harness applied to the answers"),
    Column("value", "number", "the score in the metric's unit"),
    Column("stderr", "number", "standard error of the score as reported by the harness", low=0),
    Column("floor", "number", "lowest score that the suite accepts; NULL where it sets none", low=0),
    Column("is_higher_better", "flag", "whether a higher score is better"),
    Column("sample_count", "integer", "number of questions that were run", low=0),
    Column("sample_total", "integer", "number of questions in the task", low=0),
    Column("limit", "integer", "maximum number of questions set by the suite; NULL for all", low=1),
    Column("few_shot", "integer", "number of few-shot examples before each question", low=0),
    Column("task_version", "text", "version of the task according to its file"),
    Column("harness_version", "text", "version of lm-eval"),
    Column("folder_sha256", "text", "hash of the suite's own task folder; NULL without one"),
    Column("quality_id", "text", "the `quality_id` of the measurements of this server; NULL if none was measured"),
    Column("value_earlier", "number", "median of the score over the earlier nights it was compared with"),
    Column("stderr_earlier", "number", "median of its standard errors in those nights", low=0),
    Column("earlier_night_count", "integer", "number of those earlier nights", low=0),
    Column("fall_se", "number", "how much worse the score is, in combined standard errors"),
    Column("not_compared", "text", "reason why the score was not compared with earlier nights"),
    Column("started_at", "moment", "start of the first task on this server"),
    Column("duration_s", "number", "duration of the task", "s", low=0),
)


# one row per probe of a sweep or a search, with what the whole of it found
SEARCH_COLUMNS = (
    IDS[0],
    Column("search", "text", "name of the sweep or search", nullable=False),
    Column("repeat", "integer", "which repeat of the search, from 0", low=0, nullable=False),
    Column("kind", "text", "saturation (a knee, in requests in flight) or goodput (in requests per second)"),
    Column("value", "number", "what the search found; NULL where it found nothing", low=0),
    Column("value_low", "number", "lower end of its interval; NULL where it is open", low=0),
    Column("value_high", "number", "upper end of its interval; NULL where it is open", low=0),
    Column("is_over", "flag", "whether the search came to its end"),
    Column("why", "text", "why it stopped"),
    Column("probe", "integer", "place of the probe in the search, from 0", low=0),
    Column("scenario_id", "text", "scenario id of the probe's run"),
    Column("concurrency", "integer", "requests in flight of a sweep's probe", low=1),
    Column("request_rate_per_s", "number", "request rate of a search's probe", "1/s", low=0),
    Column("status", "text", "OK, DEGRADED, SATURATED or FAILING; of a search KEPT, MISSED, UNSURE or FAILING"),
    Column("request_count", "integer", "requests of the probe", low=0),
    Column("completed", "integer", "requests that completed", low=0),
    Column("within_slo", "integer", "requests within the SLO; NULL without one", low=0),
    Column("output_throughput_tok_per_s", "number", "output tokens of completed requests over time", "tok/s", low=0),
    Column("held_share", "number", "rate of completions over rate of sends; below 0.95 a queue grew", low=0),
    Column("ttft_p99_ms", "number", "p99 of TTFT, of however few requests", "ms", low=0),
    Column("e2el_p99_ms", "number", "p99 of E2EL, of however few requests", "ms", low=0),
    Column("reason", "text", "why the probe's run failed"),
)


# one row per candidate of a night of `nightbench tune`
TUNING_COLUMNS = (
    IDS[0],
    Column("suite", "text", "name of the suite whose flags are searched", nullable=False),
    Column("scenario", "text", "name of its scenario that is measured", nullable=False),
    Column("kind", "text", "round, or confirmation of the best one against the suite's own flags"),
    Column("round", "integer", "place of the night in the search, from 1", low=1),
    Column("candidate", "text", "name of the candidate; own: the suite's flags", nullable=False),
    Column("flags", "text", "flags that replace the suite's of the same name; empty: none"),
    Column("metric", "text", "name of the metric that is searched"),
    Column("value", "number", "its geometric mean over the runs that count, in the unit of its name", low=0),
    Column("runs", "integer", "runs that count: accepted or suspect", low=0),
    Column("request_count", "integer", "requests of a run", low=1),
    Column("slo", "text", "SLO that the requests must keep; NULL without one"),
    Column("within_slo_share", "number", "share of the requests of these runs within the SLO", low=0, high=1),
    Column("place", "integer", "place by the metric among the candidates that may go on, from 1", low=1),
    Column("is_kept", "flag", "whether it went on; of a confirmation whether its flags are the answer"),
    Column("dropped_for", "text", "why it went no further"),
    Column("ratio", "number", "of a confirmed candidate: its value over that of the suite's own flags", low=0),
    Column("ratio_low", "number", "lower end of the ratio's 95 % interval by rounds of A B B A", low=0),
    Column("ratio_high", "number", "upper end of that interval", low=0),
    Column("verdict", "text", "verdict on the pair: gain, loss, equivalent or inconclusive"),
    Column("is_over", "flag", "whether the search has its answer"),
    Column("next_step", "text", "what followed, or the answer of the search"),
)


# one row per metric of a run of a command
COMMAND_COLUMNS = (
    *IDS,
    Column("metric", "text", "name of the metric in the suite", nullable=False),
    Column("unit", "text", "unit of its numbers, as the suite states it", nullable=False),
    Column("value", "number", "the metric: mean, last or highest of its values, as the suite asks"),
    Column("samples", "integer", "how many values it has after the warm-up", low=1),
    Column("mean", "number", "mean of these values"),
    Column("stdev", "number", "their sample standard deviation; NULL for one value", low=0),
    Column("min", "number", "lowest of them"),
    Column("max", "number", "highest of them"),
)
