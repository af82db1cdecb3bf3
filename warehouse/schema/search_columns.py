"""The columns of `search_probes`: one row per probe of a sweep or a search, with what the whole of it found."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

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
