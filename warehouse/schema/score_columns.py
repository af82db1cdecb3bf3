"""The columns of `quality_scores`: one row per score of an lm-eval task."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

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
