"""The columns of `telemetry` and `server_samples`: one row a sample taken during a run."""

from bench.engines.vllm import SAMPLED
from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

TELEMETRY_COLUMNS = (
    *IDS,
    Column("at", "moment", "when it was sampled"),
    Column("cpu_share", "number", "processor time in use", "share"),
    Column("load_average_1m", "number", "load average of one minute"),
    Column("memory_used_bytes", "integer", "memory in use", "bytes"),
    Column("steal_share", "number", "CPU time taken by the hypervisor", "share"),
    Column("engine_rss_bytes", "integer", "resident memory of the engine's processes", "bytes"),
    Column("engine_cpu_s", "number", "processor time of the engine's processes so far", "s"),
)

SERVER_SAMPLE_COLUMNS = (
    *IDS,
    Column("at", "moment", "when it was asked"),
    Column("at_s", "number", "the middle of asking and answer on the client's clock; NULL where it has none", "s"),
    Column("took_ms", "number", "how long the server took to answer", "ms", low=0),
    Column("error", "text", "why the server gave no counters; all of them are NULL then"),
    *(Column(ours, "number", f"`vllm:{theirs}`, summed over its labels") for ours, theirs in SAMPLED.items()),
)
