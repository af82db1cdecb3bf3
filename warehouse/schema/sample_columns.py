"""The columns of `telemetry` and `server_samples`: one row per sample."""

from bench.engines import vllm
from bench.engines.by_name import SAMPLED_NAMES
from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS


def _metrics(ours: str) -> str:
    """The metric that a column has: vLLM's, by whose names other engines' counters are read too."""
    return f"`{vllm.PREFIX}:{vllm.SAMPLED[ours]}` or another engine's counterpart"


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
    Column("io_pressure_share", "number", "share of the time in which a process waited for a disk", "share"),
    Column("run_queue", "integer", "processes that ran or waited for a core, ours too"),
    Column("core_frequency_mhz", "number", "mean frequency of the cores; NULL: not reported", "MHz"),
    Column("engine_rss_bytes", "integer", "resident memory of the engine's processes", "bytes"),
    Column("engine_cpu_s", "number", "total processor time of the engine's processes", "s"),
    Column("at_s", "number", "time of the sample on the client's clock; NULL if unknown", "s"),
    Column("gpu_index", "integer", "index of the GPU that the row is of; NULL in a row of the host"),
    Column("gpu_uuid", "text", "UUID of the GPU; NULL where its tool does not print it"),
    Column("gpu_power_w", "number", "power of the GPU", "W"),
    Column("gpu_power_cap_w", "number", "power cap of the GPU", "W"),
    Column("gpu_energy_j", "number", "energy counter of the GPU, since boot", "J"),
    Column("gpu_edge_c", "number", "temperature of the GPU: the edge of AMD's, the die of NVIDIA's", "°C"),
    Column("gpu_junction_c", "number", "highest temperature of the GPU (junction or hotspot)", "°C"),
    Column("gpu_memory_c", "number", "temperature of the GPU's memory", "°C"),
    Column("gpu_clock_mhz", "number", "core clock of the GPU", "MHz"),
    Column("gpu_memory_clock_mhz", "number", "memory clock of the GPU", "MHz"),
    Column("gpu_used_bytes", "integer", "memory of the GPU in use", "bytes"),
    Column("gpu_busy_share", "number", "share of the time in which the GPU was busy", "share"),
    Column("gpu_memory_busy_share", "number", "share of the time in which the GPU's memory was busy", "share"),
    Column("gpu_is_throttled", "flag", "whether heat, a fault or a power brake held the clocks back"),
    Column("gpu_throttle_reasons", "text", "what held the clocks back, the power cap included; NULL: nothing"),
    Column("gpu_ecc_corrected", "integer", "counter of corrected memory errors"),
    Column("gpu_ecc_uncorrected", "integer", "counter of memory errors that could not be corrected"),
)

SERVER_SAMPLE_COLUMNS = (
    *IDS,
    Column("at", "moment", "time of the request for metrics"),
    Column("at_s", "number", "midpoint of request and response on the client's clock; NULL if unknown", "s"),
    Column("took_ms", "number", "response time of the server", "ms", low=0),
    Column("error", "text", "reason why the server returned no counters; they are all NULL then"),
    *(Column(name, "number", f"{_metrics(name)}, summed over its labels") for name in SAMPLED_NAMES),
)
