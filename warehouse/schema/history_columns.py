"""The columns of `history_points` and `history_remarks`: other people's nights, as their files state them."""

from warehouse.schema.column import Column

_IMPORT = Column("night", "text", "import, by the hash of its file; partition of the lake", nullable=False)

HISTORY_POINT_COLUMNS = (
    _IMPORT,
    Column("source", "text", "repository or tool that the history is from"),
    Column("series", "text", "name of the series, without what explains its values", nullable=False),
    Column("metric", "text", "metric, as the file names it", nullable=False),
    Column("unit", "text", "unit, as the file states it"),
    Column("measured_at", "moment", "time of the result", nullable=False),
    Column("value", "number", "value; NULL for a failure"),
    Column("failure", "text", "reason why the value is a failure"),
    Column("is_lower_better", "flag", "whether less is better, where the file says so"),
    Column("spread", "number", "standard deviation or range that the file states", low=0),
    Column("repeat", "text", "repeat, as the file names it"),
    Column("run_id", "text", "run that the value is from"),
    Column("host", "text", "host"),
    Column("driver", "text", "version of the GPU driver or runtime"),
    Column("image", "text", "container image"),
    Column("engine_version", "text", "version of the engine"),
    Column("engine_commit", "text", "commit of the engine or of its benchmark"),
    Column("model_revision", "text", "revision of the weights"),
    Column("flags", "text", "flags of the engine, or their hash"),
    Column("client_version", "text", "version of the load client"),
    Column("arrivals", "text", "arrival schedule, or its hash"),
    Column("repeats", "text", "number of repeats that the value is of"),
    Column("workload", "text", "what is measured, where it changes under one name"),
    Column("method_version", "text", "version of the measuring method"),
    Column("place", "text", "where the value stands in its file", nullable=False),
    Column("note", "text", "what else the file says of the value"),
)

HISTORY_REMARK_COLUMNS = (
    _IMPORT,
    Column("code", "text", "sort of doubt: duplicate_run, zero, not_finite, no_host, ...", nullable=False),
    Column("count", "integer", "how often", low=1, nullable=False),
    Column("message", "text", "the remark as a sentence", nullable=False),
)
