"""The columns of `telemetry` and `server_samples`: one row per sample."""

from bench.engines.by_name import ENGINES, SAMPLED_NAMES
from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS


def _metrics(ours: str) -> str:
    """The metric of each engine that a column has."""
    return " or ".join(f"`{name}:{module.SAMPLED[ours]}`" for name, module in ENGINES.items() if ours in module.SAMPLED)


TELEMETRY_COLUMNS = (
    *IDS,
    Column("at", "moment", "time of the sample"),
    Column("cpu_share", "number", "share of processor time in use", "share"),
    Column("load_average_1m", "number", "1-minute load average"),
    Column("memory_used_bytes", "integer", "memory in use", "bytes"),
    Column("steal_share", "number", "share of CPU time taken by the hypervisor", "share"),
    Column("other_cpu_share", "number", "share of the cores' time that other processes took", "share"),
    Column("cpu_pressure_share", "number", "share of the time in which a process waited for a core", "share"),
    Column("memory_pressure_share", "number", "share of the time in which a process waited for memory", "share"),
    Column("engine_rss_bytes", "integer", "resident memory of the engine's processes", "bytes"),
    Column("engine_cpu_s", "number", "total processor time of the engine's processes", "s"),
)

SERVER_SAMPLE_COLUMNS = (
    *IDS,
    Column("at", "moment", "time of the request for metrics"),
    Column("at_s", "number", "midpoint of request and response on the client's clock; NULL if unknown", "s"),
    Column("took_ms", "number", "response time of the server", "ms", low=0),
    Column("error", "text", "reason why the server returned no counters; they are all NULL then"),
    *(Column(name, "number", f"{_metrics(name)}, summed over its labels") for name in SAMPLED_NAMES),
)
