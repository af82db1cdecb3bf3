"""The columns of `requests`: one row a measured request."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

REQUEST_COLUMNS = (
    *IDS,
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
