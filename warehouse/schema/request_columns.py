"""The columns of `requests`: one row per measured request."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

REQUEST_COLUMNS = (
    *IDS,
    Column("request_index", "integer", "position among the measured requests", nullable=False, low=0),
    Column("outcome", "text", "ok, or the failure class", nullable=False),
    Column("error", "text", "error message of the failure"),
    Column("intended_s", "number", "time the request was due, on the client's clock", "s"),
    Column("send_s", "number", "time the request was sent, on the client's clock", "s"),
    Column("ttft_ms", "number", "time from request sent to first token", "ms"),
    Column("tpot_ms", "number", "mean time per output token after the first; NULL for a one-token answer", "ms"),
    Column("e2el_ms", "number", "time from request sent to last token", "ms"),
    Column("input_tokens", "integer", "prompt tokens as counted by the server", "tokens"),
    Column("output_tokens", "integer", "output tokens as counted by the server", "tokens"),
    Column(
        "itl_us",
        "counts",
        "gaps between consecutive token events, rounded, 35 minutes at most; NULL for a failed request",
        "us",
    ),
    Column("itl_ms", "gaps", "the same in ms; older files have these only, and of newer ones they are computed", "ms"),
    Column("itl_tokens", "counts", "tokens in the event that ends each gap; NULL if unknown", "tokens"),
    Column("window", "text", "ramp, steady or drain; NULL without a steady window"),
    Column(
        "cached_tokens",
        "integer",
        "prompt tokens from the server's prefix cache; NULL if the server does not report them",
        "tokens",
    ),
    Column(
        "cached_tokens_planned",
        "integer",
        "prompt tokens that it was made to find in the prefix cache; NULL if unknown",
        "tokens",
        low=0,
    ),
    Column("session", "integer", "number of its conversation or agent session; NULL without one", low=0),
    Column("turn", "integer", "its place among the turns of the session, from 0", low=0),
    Column("server_ttft_ms", "number", "reported by the server: time from scheduled to first token", "ms"),
    Column("server_queue_ms", "number", "reported by the server: time from queued to scheduled", "ms"),
    Column("server_generation_ms", "number", "reported by the server: time from first to last token", "ms"),
    Column("server_mean_itl_ms", "number", "reported by the server: generation time per token after the first", "ms"),
)
