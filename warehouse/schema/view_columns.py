"""The columns of views that are in no table, and the table that each view's other columns come from."""

from collections.abc import Mapping
from functools import cache

from warehouse.schema.column import Column
from warehouse.schema.columns import COLUMNS, TABLES, Table
from warehouse.schema.cost_view_columns import COST_VIEW_COLUMNS
from warehouse.schema.star import DIMENSIONS

_METRIC = Column("metric", "text", "name of the metric: a column of `measurements`")
_REPEATS = Column("repeats", "integer", "repeats behind the value that count", low=0)
_NOISY = Column("is_noisy", "flag", "whether noise on its host makes one of the runs behind the value suspect")
_LEASES = Column("leases", "integer", "leases behind the values", low=0)
_WITHIN = Column("spread_within", "number", "standard deviation of the logarithms of repeats on one lease; 0.01 is 1 %")
_BETWEEN = Column("spread_between", "number", "standard deviation of the logarithms between leases; 0.01 is 1 %")
_HALF_WIDTH = Column("half_width", "number", "half of the 95 % interval, on logarithms; 0.01 is 1 %")
_VALUE = Column("value", "number", "value of the metric, in the unit of its column")
_SEARCHED = Column("value", "number", "what the search found, in its own unit")

_PUBLISHED = (
    Column("line", "integer", "line in catalog/published.csv", low=2),
    Column("source", "text", "source of the figure"),
    Column("source_date", "text", "date of the source as it states it, or `undated`"),
    Column("gpu", "text", "the catalogue's name of the GPU, else as printed"),
    Column("framework", "text", "engine as printed"),
    Column("framework_version", "text", "version of the engine as printed"),
    Column("load", "integer", "requests in flight or batch size", low=1),
    Column("metric", "text", "name of the metric in catalog/published.csv"),
    Column("value", "text", "value as its source prints it"),
    Column("number", "number", "that value; NULL for a range or no number"),
    Column("unit", "text", "unit of the value as printed"),
    Column("verdict", "text", "verdict of the audit on the figure"),
    Column("notes", "text", "what else the source says"),
)

_NIGHTS = (
    Column("first_night", "text", "first night with this combination"),
    Column("last_night", "text", "last night with it"),
)

_OF_SETUP = (
    Column("series", "text", "model, precision, GPUs, parallelism, scenario, engine and load client"),
    Column("measured_at", "moment", "start of the lease's first run that counts"),
    Column(
        "others_share", "number", "CPU time that others took from the repeats that noise makes suspect", "share", low=0
    ),
    Column("driver", "text", "version of the GPU driver"),
    Column("image", "text", "digest of the container image, else its name"),
    Column("engine_version", "text", "version that the running server reported"),
    Column("engine_commit", "text", "commit of the engine's image, else its build"),
    Column("model_revision", "text", "revision of the weights, else their hash"),
    Column("flags", "text", "hash of the engine's flags"),
    Column("client_version", "text", "version of the load client"),
    Column("arrivals", "text", "arrivals with their burstiness"),
    Column("repeats", "text", "place of the repeats after a server start"),
    Column("workload", "text", "prompts, lengths, concurrency and rate"),
)


def _key(dimension: str) -> Column:
    return Column(f"{dimension}_key", "text", f"hash of the columns of `dim_{dimension}`")


VIEW_COLUMNS: dict[str, tuple[Column, ...]] = {
    **COST_VIEW_COLUMNS,
    "answer_overheads": (
        _METRIC,
        Column("value", "number", "geometric mean with the demanded form, in the metric's unit"),
        Column("free_value", "number", "the same of the free twin"),
        Column("ratio", "number", "value over free_value"),
        _REPEATS,
        Column("free_repeats", "integer", "repeats of the free twin that count", low=0),
    ),
    **{f"dim_{dimension}": (_key(dimension), *_NIGHTS) for dimension in DIMENSIONS},
    "dim_metric": (
        _METRIC,
        Column("unit", "text", "its unit"),
        Column("direction", "integer", "1 where more is better, -1 where less is", low=-1, high=1),
        Column("min_effect", "number", "smallest change that counts, as a share", low=0),
        Column("meaning", "text", "what it is"),
    ),
    "dim_price": (
        Column("valid_from", "text", "first night in which the price was paid"),
        Column("valid_to", "text", "last night in which it was paid"),
    ),
    "fact_run": tuple(map(_key, DIMENSIONS)),
    "fact_measurement": (
        _METRIC,
        _VALUE,
        Column("is_valid", "flag", "whether the run counts and no finding withdrew the value"),
    ),
    "mart_nightly": (
        Column("gpu", "text", "name of the first GPU"),
        Column("tok_per_s_per_gpu", "number", "output throughput for each GPU", "tok/s", low=0),
        Column("tok_per_s_per_user", "number", "output tokens a second that one request gets, median", "tok/s", low=0),
    ),
    "capacity": (
        Column("tries", "integer", "attempts to rent", low=0),
        Column("rented", "integer", "attempts that rented a machine", low=0),
        Column("rented_share", "number", "share of the attempts that rented a machine", low=0, high=1),
        Column("last_rented_at", "moment", "start of the last attempt that rented a machine"),
        Column("last_tried_at", "moment", "start of the last attempt"),
        Column("last_reason", "text", "reason of the last attempt that rented none"),
        Column("last_usd_per_hour", "number", "price of the last attempt", "USD/h", low=0),
    ),
    "changes": (
        Column("state", "text", "state of today: as acknowledged, else as judged last"),
        Column("said_state", "text", "state when it was judged"),
        Column("event_series", "integer", "series of the event", low=1),
    ),
    "controls": (Column("log_output_throughput", "number", "natural logarithm of `output_throughput_tok_per_s`"),),
    "findings_worst": (Column("doubts", "integer", "findings of the run that are not informative", low=0),),
    "latest_vs_30": (
        _METRIC,
        Column("latest", "number", "median of the latest night, in the metric's unit"),
        Column("before", "number", "median of the nights before, in the metric's unit; NULL without one"),
        Column("ratio", "number", "latest over before"),
        Column("nights_before", "integer", "nights behind `before`, at most 30", low=0, high=30),
    ),
    "lease_means": (
        _METRIC,
        _NOISY,
        _REPEATS,
        Column("mean_log", "number", "mean of the natural logarithms of the values"),
        Column("squares", "number", "sum of the squared distances of the logarithms from their mean", low=0),
    ),
    "machine_pairs": (
        _METRIC,
        *(Column(f"machine_{side}", "text", "name of a machine in the suite") for side in "ab"),
        *(
            Column(f"value_{side}", "number", f"geometric mean on machine_{side}, in the metric's unit")
            for side in "ab"
        ),
        *(Column(f"repeats_{side}", "integer", f"accepted repeats on machine_{side}", low=0) for side in "ab"),
        Column("ratio", "number", "value_a over value_b; NULL where refused"),
        Column("ratio_low", "number", "lower end of the 95 % interval of the ratio, by Welch's t on logarithms"),
        Column("ratio_high", "number", "higher end of that interval"),
        Column("refused", "text", "the terms that differ, for which the two are not compared"),
        *(Column(f"scenario_id_{side}", "text", f"scenario_id on machine_{side}") for side in "ab"),
    ),
    "machine_prices": (
        Column("provider", "text", "who lists the price; NULL for the night's own price"),
        Column("price_date", "text", "day on which the price was seen"),
        _REPEATS,
        Column("output_tok_per_usd", "number", "output tokens for a dollar", "tok/USD", low=0),
    ),
    "metric_values": (
        Column("is_first", "flag", "whether it is of the first run after a server's start"),
        _NOISY,
        _METRIC,
        _VALUE,
    ),
    "nightly_medians": (
        _METRIC,
        Column("median", "number", "median of the night's runs that count, in the metric's unit"),
        Column("runs", "integer", "runs behind the median", low=1),
    ),
    "monthly_histograms": (
        Column("month", "text", "month of the nights: the first seven characters of their names"),
        Column("metric", "text", "the latency: ttft or itl_event"),
        Column("bin", "integer", "place of the bin, from 1", low=1),
        Column("low_ms", "number", "where the bin begins", "ms", low=1),
        Column("high_ms", "number", "where it ends", "ms", low=1),
        Column("count", "integer", "values in the bin", low=1),
    ),
    "night_repeats": (
        _METRIC,
        _REPEATS,
        _LEASES,
        Column("mean", "number", "geometric mean of the repeats, in the metric's unit"),
        _WITHIN,
        _BETWEEN,
        _HALF_WIDTH,
        Column("low", "number", "lower end of the 95 % interval of the mean, in the metric's unit"),
        Column("high", "number", "higher end of that interval"),
    ),
    "repeat_history": (
        _METRIC,
        _REPEATS,
        _LEASES,
        _WITHIN,
        Column("degrees_within", "integer", "degrees of freedom of `spread_within`", low=0),
        _BETWEEN,
        Column("degrees_between", "integer", "degrees of freedom of `spread_between`", low=0),
    ),
    "sessions": (
        Column("turns", "integer", "measured requests of the session", low=1),
        Column("turns_done", "integer", "those that were answered", low=0),
        Column("begin_s", "number", "time its first request was sent, on the client's clock", "s"),
        Column("e2e_s", "number", "from its first request to its last answer, pauses included", "s", low=0),
        Column("waited_s", "number", "sum of the times of its requests, without its pauses", "s", low=0),
        Column("input_tokens", "integer", "prompt tokens of all its turns", "tokens", low=0),
        Column("output_tokens", "integer", "output tokens of all its turns", "tokens", low=0),
        Column("longest_input_tokens", "integer", "the longest of its prompts", "tokens", low=0),
        Column("tok_per_s", "number", "output tokens over the time that it waited", "tok/s", low=0),
        Column(
            "cached_share_planned",
            "number",
            "share of its prompt tokens that were made to be in the prefix cache",
            low=0,
        ),
        Column("cached_share", "number", "share that the server's answers report to be; NULL if they do not", low=0),
    ),
    "server_starts": (Column("runs", "integer", "measurements on the server", low=1),),
    "start_phases": (
        Column("phase", "text", "phase of the start, as in `start_import_s`"),
        Column("duration_s", "number", "its duration", "s", low=0),
        Column("began_at", "moment", "end of the phase before it"),
        Column("ended_at", "moment", "that moment and the duration"),
    ),
    "search_repeats": (
        Column("repeats", "integer", "repeats of the search", low=1),
        Column("is_whole", "flag", "whether each repeat found a value"),
        Column("value", "number", "geometric mean of what the repeats found"),
        Column("spread", "number", "standard deviation of the logarithms of what they found; 0.01 is 1 %"),
        _HALF_WIDTH,
        Column("value_low", "number", "lower end of the 95 % interval of `value`; NULL of fewer than two repeats"),
        Column("value_high", "number", "higher end of that interval"),
    ),
    "searches": (
        _SEARCHED,
        Column("probes", "integer", "probes of the search", low=1),
        Column("requests", "integer", "requests of its probes", low=0),
    ),
    "series_setups": _OF_SETUP,
    "series_nights": (
        *_OF_SETUP,
        _METRIC,
        Column("value", "number", "geometric mean of the lease's repeats that count, in the metric's unit"),
        Column("spread", "number", "standard deviation of their logarithms; 0.01 is 1 %"),
        Column("repeat_count", "integer", "repeats behind the value that count", low=1),
        Column("control", "number", "mean logarithm of the control's throughput on the lease; NULL without a control"),
    ),
    "published": _PUBLISHED,
    "beside_published": (
        *_PUBLISHED,
        _METRIC,
        _REPEATS,
        Column("ours", "number", "mean over the accepted repeats, in the unit of `metric`"),
        Column("published_metric", "text", "name of the metric in catalog/published.csv"),
        Column("published", "text", "value as its source prints it"),
        Column("published_verdict", "text", "verdict of the audit on the published figure"),
        Column("ratio", "number", "ours over theirs; NULL where the terms differ"),
        Column("terms", "texts", "terms that differ, theirs first"),
        Column("engine", "text", "engine and its version, as found"),
    ),
}
_COMES_FROM: dict[str, tuple[Table, ...]] = {
    "capacity": ("attempts",),
    "dim_price": ("leases",),
    "changes": ("change_points", "acknowledgements"),
    "stage_costs": ("stages", "measurements"),
    "searches": ("search_probes",),
    "search_repeats": ("search_probes",),
    "findings_worst": ("findings", "measurements"),
    "sessions": ("requests",),
    "standing_claims": ("claims",),
    "accepted_claims": ("claims",),
}


@cache
def columns_of(view: str) -> Mapping[str, Column]:
    """The columns that a table or view can have, by name."""
    of_view: tuple[Table, ...] = _COMES_FROM.get(view, ("measurements",))
    tables = next(((table,) for table in TABLES if table == view), of_view)
    found = {column.name: column for table in reversed(tables) for column in COLUMNS[table]}
    return found | {column.name: column for column in VIEW_COLUMNS.get(view, ())}
