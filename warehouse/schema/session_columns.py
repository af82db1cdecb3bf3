"""The columns of recorded traces, of sessions, and of how much of the prompts the prefix cache had."""

from warehouse.schema.column import Column

TRACE_ASKED = (
    Column("trace_format", "text", "format of the recorded trace; NULL without one"),
    Column("trace_sha256", "text", "hash of the file of the trace"),
    Column("trace_speed", "number", "how many times as fast as recorded it is replayed", low=0),
    Column("trace_from_s", "number", "time of the trace that is left out at its begin", "s", low=0),
)
SESSION_COLUMNS = (
    Column(
        "planned_cache_hit_share",
        "number",
        "share of the prompt tokens that the prompts were made to find in the prefix cache",
        "share",
        low=0,
    ),
    Column(
        "server_cache_hit_share",
        "number",
        "share of the prompt tokens that the server found in its prefix cache, by its counters",
        "share",
    ),
    Column("sessions_done", "integer", "measured sessions of which every turn was answered", low=0),
    Column("sessions_open_mean", "number", "mean number of sessions open until the last one began", low=0),
    *(
        Column(
            f"session_e2e_{name}_s",
            "number",
            f"{name} of a session's time from first request to last answer",
            "s",
            low=0,
        )
        for name in ("mean", "p50", "p99")
    ),
    Column(
        "session_p50_tok_per_s",
        "number",
        "median over sessions of output tokens over the time that the session waited for its answers",
        "tok/s",
        low=0,
    ),
    Column(
        "usd_per_session", "number", "price of the machine for the load, for each session that was done", "USD", low=0
    ),
)
# Those that have a series of their own and are judged each night.
SESSION_METRICS = ("session_e2e_mean_s", "session_e2e_p50_s", "session_p50_tok_per_s", "usd_per_session")
