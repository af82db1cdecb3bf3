"""The columns of `measurements`: labels, configuration as requested and as found, evidence and lineage."""

from bench.audit.rules import NIGHT_RULES, NOT_CHECKABLE, Rule
from bench.audit.rules.wording import bounds_text
from warehouse.schema.claim_columns import DEVICE_COLUMNS
from warehouse.schema.column import Column
from warehouse.schema.metric_columns import METRIC_COLUMNS
from warehouse.schema.session_columns import TRACE_ASKED
from warehouse.schema.shared_columns import IDS, PRICE, WITHDRAWN
from warehouse.schema.start_columns import START_COLUMNS
from warehouse.schema.workload_columns import (
    ANSWERS_ASKED,
    DISAGGREGATED_ASKED,
    KV_OFFLOAD_ASKED,
    SPECULATION_ASKED,
    WORKLOAD_COLUMNS,
)

_LABELS = (
    Column("suite", "text", "name of the suite"),
    Column("scenario", "text", "name of the scenario in its suite"),
    Column("server_id", "text", "hash of the settings that the server was started with"),
    Column("order", "integer", "position in the night, from 0", low=0),
    Column("is_first_after_start", "flag", "whether it was the first run after its server's start; NULL: unknown"),
    Column(
        "repeats_ended_by",
        "text",
        "why no further repeat was added: narrow, time, most, failure or stopped; NULL: their number was planned",
    ),
    Column("outcome", "text", "measured, failed or not-run", nullable=False),
    Column("stage", "text", "stage at which a failed run ended; `load` when its folder could not be read"),
    Column("reason", "text", "reason why the run failed or did not start"),
    Column("failure", "text", "class of the engine's failure, such as oom_kv_len; NULL for other failures"),
    Column("series_identity", "texts", "what else makes another series, as the suite declares it"),
    Column("forced", "text", "reasons why the night would have been refused without --force"),
    Column("fallback_of", "text", "scenario that ran out of memory and that this smaller one stands in for"),
    Column("rung", "integer", "rung of the ladder, from 1; 0: as the suite asks", low=0),
    Column("is_control", "flag", "whether the run is the suite's control: it explains the host and is not a result"),
    Column("verdict", "text", "accepted, suspect, rejected, failed or not-run", nullable=False),
    Column("is_only_noisy", "flag", "whether nothing but noise on its host makes it suspect; it then counts in series"),
    WITHDRAWN,
)

_ASKED = (
    Column("machine", "text", "name of the machine in its suite; NULL in a suite of one machine"),
    Column("machine_kind", "text", "kind of machine that the run was measured on or planned for"),
    Column("model", "text", "name the model is served under"),
    Column("model_source", "text", "source of the weights"),
    Column("catalog_model", "text", "the catalogue's name of the model; NULL: it has none"),
    Column("precision", "text", "precision of the weights as served"),
    Column("engine", "text", "inference engine"),
    Column("engine_version_asked", "text", "engine version that the suite requests"),
    Column("engine_flags", "texts", "extra arguments of the engine, in order"),
    Column("max_model_len", "integer", "requested context length", "tokens", low=1),
    Column("prompts", "text", "kind of prompt: random, shared-prefix, multi-turn, images, sharegpt or written"),
    Column(
        "prompt_form",
        "text",
        "how prompts are sent: tokens (exact length), text or chat (about the requested length)",
    ),
    Column("images_per_prompt", "integer", "images in each prompt", low=1),
    Column("image_width", "integer", "width of each image", "pixels", low=1),
    Column("image_height", "integer", "height of each image", "pixels", low=1),
    Column("image", "text", "container image that the suite requests"),
    Column("image_version", "text", "version of the build of a tracked image, as its labels say; NULL: not tracked"),
    Column("image_commit", "text", "commit of the build of a tracked image; NULL: not tracked, or its labels say none"),
    Column("isl", "integer", "requested input length", "tokens", low=1),
    Column("osl", "integer", "requested output length", "tokens", low=1),
    Column("concurrency_asked", "integer", "requested number of requests in flight (closed loop)", low=1),
    Column("request_rate_per_s_asked", "number", "requested arrival rate (open loop)", "1/s", low=0),
    Column("arrivals", "text", "closed, sessions, constant, poisson, gamma, trace, or batch: all at once"),
    Column(
        "burstiness_asked",
        "number",
        "shape of the gamma distribution of arrivals: 1 is Poisson, below 1 is burstier",
        low=0,
    ),
    *TRACE_ASKED,
    Column("driver", "text", "load driver: meter, vllm-bench, vllm-rs-bench, vllm-throughput or vllm-latency"),
    Column("request_count", "integer", "number of requests to measure", low=1),
    Column("warmup_count", "integer", "number of warm-up requests, not measured", low=0),
    *SPECULATION_ASKED,
    *KV_OFFLOAD_ASKED,
    *DISAGGREGATED_ASKED,
    *ANSWERS_ASKED,
    Column("min_duration_s", "number", "minimum duration that the suite requests", "s", low=0),
    Column("min_requests_per_slot", "number", "minimum requests per concurrency slot that the suite requests", low=0),
    Column("max_other_cpu_share", "number", "CPU time that the suite allows other processes", "share", low=0, high=1),
    Column("half_width_max", "number", "half-width of the repeats' interval that the suite asks for", "share", low=0),
    Column(
        "runs_s", "number", "time of all runs of the night within which repeats are added; NULL: no limit", "s", low=0
    ),
    Column("scenario_s", "number", "time of all repeats of a scenario that the suite allows", "s", low=0),
    Column("lm_eval_floors", "texts", "lowest lm-eval scores that the suite accepts; NULL where it sets none"),
    Column("lm_eval_tasks", "texts", "lm-eval tasks that the suite runs on each server; NULL where it runs none"),
)

_FOUND = (
    Column("engine_version_found", "text", "version that the running server reported"),
    Column("engine_build", "text", "build of the running server"),
    Column("model_revision", "text", "revision of the weights on the host"),
    Column("model_sha256", "text", "hash of the weights on the host"),
    Column("driver_version", "text", "version of the load driver"),
    Column("load_seed", "integer", "seed of the prompts and arrivals"),
    Column("host", "text", "host name of the machine"),
    Column(
        "host_id", "text", "hash of provider, region, plan, serial number and GPU ids; NULL: no serial and no id known"
    ),
    Column("serial_sha256", "text", "hash of the host's serial number"),
    Column("kernel", "text", "kernel version of the host"),
    Column("bios_version", "text", "version of the host's BIOS"),
    Column("cpu_microcode", "text", "microcode of the host's processor"),
    Column("numa_balancing", "integer", "the kernel's automatic NUMA balancing; 0 is off", low=0),
    Column("cpu_model", "text", "processor of the host"),
    Column("cpu_count", "integer", "number of logical processors of the host", low=1),
    Column("gpus", "texts", "GPUs of the host; empty where it has none"),
    Column("catalog_gpu", "text", "the catalogue's name of the first of them; NULL: it has none"),
    Column("gpu_driver", "text", "version of the GPU driver"),
    Column("rocm_version", "text", "version of ROCm on the host"),
    Column("cuda_version", "text", "highest version of CUDA that the GPU driver of the host serves"),
    Column("gpu_uuids", "texts", "ids of the GPUs"),
    Column("gpu_serials_sha256", "texts", "hash of each GPU's serial number"),
    Column(
        "gpu_firmware", "texts", "NAME=version of each firmware of the GPUs, sorted; all versions where GPUs differ"
    ),
    Column("gpu_vbios", "text", "VBIOS of the GPUs; several are separated by commas"),
    Column("gpu_partition", "text", "partition mode of the GPUs: SPX, CPX, MIG enabled or disabled"),
    Column("gpu_memory_partition", "text", "memory partition of the GPUs: NPS1, NPS4"),
    Column("power_cap_asked_w", "number", "power cap of each GPU that the suite asks for; NULL: none", "W", low=0),
    Column("gpu_power_cap_w", "number", "lowest power cap among the GPUs, as found", "W", low=0),
    Column("gpu_ecc", "flag", "whether every GPU has ECC on"),
    Column("torch_version", "text", "version of torch in the engine's environment, as the lease's canary found it"),
    Column("attention_backend", "text", "attention backend that the engine logs"),
    Column("engine_environment", "texts", "NAME=value of each public variable of the engine, sorted by name"),
    Column("engine_environment_sha256", "text", "hash of `engine_environment`; equal for equal variables"),
    Column(
        "engine_flags_found", "texts", "the running engine's flags by their long names, sorted; without its address"
    ),
    Column("engine_flags_sha256", "text", "hash of `engine_flags_found`; equal for equal flags in any order"),
    Column("image_digest", "text", "digest of the container image"),
    Column("gpu_count", "integer", "GPUs that the engine used, by its ranks and visible devices; NULL: unknown", low=0),
    Column("tp_size", "integer", "tensor parallel size in the running engine's arguments", low=1),
    Column("pp_size", "integer", "pipeline parallel size in the running engine's arguments", low=1),
    Column("dp_size", "integer", "data parallel size in the running engine's arguments", low=1),
    Column("ep_size", "integer", "expert parallel size in the engine's arguments; NULL: experts are cut", low=1),
    Column("kv_cache_tokens", "integer", "KV cache capacity according to the server's log", "tokens", low=0),
    Column("load_average_before", "number", "1-minute load average of the host before the load", low=0),
    Column("load_average_after", "number", "1-minute load average of the host after the load", low=0),
    Column("steal_share", "number", "share of CPU time taken by the hypervisor", "share", low=0, high=1),
    Column(
        "other_cpu_share",
        "number",
        "share of the cores' time during the load that other processes took; NULL: not measured",
        "share",
        low=0,
        high=1,
    ),
    Column(
        "other_memory_bytes_per_s",
        "number",
        "memory traffic of other processes during the load; NULL: not measured",
        "bytes/s",
        low=0,
    ),
    Column("other_processes", "text", "that share, and by name the other processes that took most, with theirs"),
    Column(
        "other_gpu_processes", "text", "other processes on the GPUs during the load, empty: none; NULL: not measured"
    ),
    Column(
        "cpu_pressure_share", "number", "share of the load in which a process waited for a core", "share", low=0, high=1
    ),
    Column(
        "memory_pressure_share",
        "number",
        "share of the load in which a process waited for memory",
        "share",
        low=0,
        high=1,
    ),
    Column(
        "io_pressure_share", "number", "share of the load in which a process waited for a disk", "share", low=0, high=1
    ),
    Column("run_queue_mean", "number", "processes that ran or waited for a core during the load, ours too", low=0),
    Column("core_frequency_mean_mhz", "number", "frequency of the cores; NULL: not reported", "MHz", low=0),
    Column("core_throttle_count", "integer", "how often a core was throttled for heat during the load", low=0),
    Column(
        "core_work_ms", "number", "CPU time of a fixed piece of work on the cores during the load: median", "ms", low=0
    ),
    Column(
        "core_speed_share",
        "number",
        "median speed of the cores during the load; 1: the run of this night and machine whose cores were fastest",
        "share",
        low=0,
        high=1,
    ),
    Column(
        "core_speed_lowest_share", "number", "the lowest speed of the cores during the load", "share", low=0, high=1
    ),
    Column("host_pressure", "text", "in words: what others took of the host during the load, and what waited for what"),
    Column("not_measured", "text", "what other processes took and could not be measured, with the reason"),
    Column(
        "cold_start_s",
        "number",
        "time from engine start to ready: log line, health check and a first completion",
        "s",
        low=0,
    ),
    *START_COLUMNS,
)

_LINEAGE = (
    Column("started_at", "moment", "when the run began"),
    Column("ended_at", "moment", "when the run ended"),
    Column("lease_id", "text", "lease of the machine, as in `leases` and `canary`; NULL for a run that never started"),
    Column("method_version", "integer", "version of the measuring method, see METHOD.md", low=1),
    Column("record_version", "integer", "version of record.json", low=1),
    Column("nightbench_version", "text", "version of Nightbench that measured"),
    Column("git_commit", "text", "commit of Nightbench that measured"),
    Column("calibration_id", "text", "calibration of the load client in that night; NULL without one"),
    Column("not_calibrated", "text", "reason why the night has no calibration"),
)


def _evidence_column(rule: Rule) -> Column:
    return Column(rule.column, "number", f"evidence of `{rule.code}` ({rule.family}): {bounds_text(rule)}")


EVIDENCE_COLUMNS = (
    *(_evidence_column(rule) for rule in NIGHT_RULES),
    Column(NOT_CHECKABLE, "number", "number of required rules with a missing input", low=0),
)

# Energy per token is by the device's counter where it has one, else by its power.
_GPUS = (
    *DEVICE_COLUMNS,
    Column("throttled_share", "number", "share of the GPUs' samples in the load that were throttled", "share"),
    Column("gpu_telemetry", "text", "tool that sampled the GPUs during the load; NULL: none"),
)

MEASUREMENT_COLUMNS = (
    *(
        *IDS,
        *_LABELS,
        *_ASKED,
        *_FOUND,
        *METRIC_COLUMNS,
        *WORKLOAD_COLUMNS,
        *PRICE,
        *_GPUS,
        *EVIDENCE_COLUMNS,
        *_LINEAGE,
    ),
)
