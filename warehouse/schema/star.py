"""The star over measurements: its metrics, and the columns whose combinations are its dimensions.

A row of a dimension is one combination of these columns; its key is a hash of them, so that every lake and every
load gives it the same key.
"""

from warehouse.schema.session_columns import SESSION_METRICS
from warehouse.schema.start_columns import START_METRICS
from warehouse.schema.workload_columns import WORKLOAD_METRICS

METRICS = (
    "request_throughput_per_s",
    "output_throughput_tok_per_s",
    "steady_output_throughput_tok_per_s",
    "ttft_mean_ms",
    "ttft_p50_ms",
    "ttft_p90_ms",
    "ttft_p95_ms",
    "ttft_p99_ms",
    "ttft_p999_ms",
    "tpot_mean_ms",
    "tpot_p50_ms",
    "tpot_p90_ms",
    "tpot_p95_ms",
    "tpot_p99_ms",
    "itl_mean_ms",
    "itl_p50_ms",
    "itl_p90_ms",
    "itl_p95_ms",
    "itl_p99_ms",
    "itl_p999_ms",
    "itl_event_p50_ms",
    "itl_event_p99_ms",
    "e2el_mean_ms",
    "e2el_p50_ms",
    "e2el_p90_ms",
    "e2el_p95_ms",
    "e2el_p99_ms",
    "usd_per_mtok_output",
    "cold_start_s",
    *START_METRICS,
    *WORKLOAD_METRICS,
    *SESSION_METRICS,
)

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "host": ("host", "host_id", "serial_sha256", "cpu_model", "cpu_count", "bios_version", "gpus", "gpu_uuids"),
    "platform": (
        *("gpu_driver", "rocm_version", "cuda_version", "gpu_firmware", "gpu_vbios", "kernel", "cpu_microcode"),
        *("gpu_partition", "gpu_memory_partition", "gpu_power_cap_w", "gpu_ecc", "numa_balancing"),
    ),
    "stack": (
        *("engine", "engine_version_found", "engine_build", "image", "image_version", "image_commit", "image_digest"),
        *("torch_version", "attention_backend", "engine_environment_sha256", "driver", "driver_version"),
    ),
    "model": ("model", "model_source", "catalog_model", "precision", "model_revision", "model_sha256"),
    "config": (
        *("engine_flags", "engine_flags_sha256", "max_model_len", "gpu_count", "tp_size", "pp_size", "dp_size"),
        *("ep_size", "max_other_cpu_share"),
    ),
    "scenario": (
        *("scenario_id", "suite", "scenario", "is_control", "prompts", "prompt_form", "isl", "osl", "request_count"),
        *("concurrency_asked", "request_rate_per_s_asked", "arrivals", "burstiness_asked", "warmup_count"),
    ),
}
