"""The columns of `quality_scores`: one row a score of a task of lm-eval."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

SCORE_COLUMNS = (
    IDS[0],
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
