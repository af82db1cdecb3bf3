"""What was requested of a run, and the host, server and weights that it found."""

from datetime import datetime

from bench.audit.own_claim import gpus_of
from bench.errors import UnreadableResultError
from bench.record import RunRecord
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload
from catalog.read import find_gpu, find_model
from warehouse.rows import stack
from warehouse.rows.start_results import of_start
from warehouse.rows.workload_results import answers_asked, disaggregated_asked, kv_offload_asked, speculation_asked
from warehouse.schema.row import Row


def requested(scenario: Scenario, quality: Quality) -> Row:
    """The columns of what the suite requests."""
    work, engine = scenario.workload, scenario.engine
    has_requests = work.command is None
    model = find_model(scenario.model.source.removeprefix("hf:").partition("@")[0])
    return {
        "scenario": scenario.name,
        "fallback_of": scenario.fallback_of,
        "rung": scenario.rung,
        "is_control": scenario.is_control,
        "machine": scenario.machine.name,
        "machine_kind": scenario.machine.kind,
        "model": scenario.model.name,
        "model_source": scenario.model.source,
        "catalog_model": None if model is None else model.model,
        "precision": scenario.model.precision,
        "engine": engine.name,
        "engine_version_asked": engine.version,
        "engine_flags": list(engine.flags),
        "max_model_len": engine.max_model_len,
        "power_cap_asked_w": scenario.power_cap_w,
        "prompts": work.prompts.kind,
        "prompt_form": work.prompts.form,
        "images_per_prompt": work.prompts.images,
        "image_width": work.prompts.width,
        "image_height": work.prompts.height,
        "image": engine.image,
        "image_version": engine.image_version,
        "image_commit": engine.image_commit,
        "isl": work.isl if has_requests else None,
        "osl": work.osl if has_requests and not work.is_embedding else None,
        "concurrency_asked": work.concurrency if has_requests else None,
        "request_rate_per_s_asked": work.request_rate_per_s,
        "arrivals": work.arrivals,
        "burstiness_asked": work.burstiness,
        **_trace_asked(work),
        "driver": work.driver,
        "request_count": work.request_count if has_requests else None,
        "warmup_count": work.warmup_count if has_requests else None,
        **speculation_asked(scenario.engine),
        **kv_offload_asked(scenario.engine),
        **disaggregated_asked(scenario.engine),
        **answers_asked(work),
        "min_duration_s": quality.min_duration_s,
        "min_requests_per_slot": quality.min_requests_per_slot,
        "max_other_cpu_share": quality.max_other_cpu_share,
        "half_width_max": quality.half_width_max,
        "scenario_s": None if quality.half_width_max is None else quality.scenario_s,
        "runs_s": None if quality.half_width_max is None else quality.runs_s,
        "lm_eval_floors": _floors_of(scenario, quality),
        "lm_eval_tasks": _tasks_of(scenario, quality),
    }


def _trace_asked(work: Workload) -> Row:
    """The columns of a recorded trace; none without one."""
    if work.trace is None:
        return {}
    names = ("trace_format", "trace_sha256", "trace_speed", "trace_from_s")
    return {name: getattr(work, name) for name in names}


def _tasks_of(scenario: Scenario, quality: Quality) -> list[str] | None:
    """The lm-eval tasks of the scenario's server."""
    return list(quality.lm_eval.tasks) if quality.lm_eval is not None and _has_scores(scenario) else None


def _has_scores(scenario: Scenario) -> bool:
    """Whether lm-eval tasks run on the scenario's server: on that of a control or of embeddings none do."""
    return not (scenario.is_control or scenario.workload.is_embedding)


def _floors_of(scenario: Scenario, quality: Quality) -> list[str] | None:
    """The floors of the scores of the scenario's server, as text; None without any."""
    if quality.lm_eval is None or not _has_scores(scenario):
        return None
    floors = quality.lm_eval.floors.items()
    return [f"{task} {name} >= {floor:g}" for task, each in floors for name, floor in sorted(each.items())] or None


def found(record: RunRecord, core_speed_share: float | None, core_speed_lowest_share: float | None) -> Row:
    """The columns of what the run found: host, server, weights, load driver; shares as in NightServers.core_speeds."""
    row: Row = {}
    if record.host:
        row |= record.host.model_dump(include={"kernel", "cpu_model", "cpu_count", "gpu_driver"})
        gpu = find_gpu(record.host.gpus[0]) if record.host.gpus else None
        row |= {"host": record.host.hostname, "gpus": list(record.host.gpus)}
        row |= {"catalog_gpu": None if gpu is None else gpu.gpu}
        row |= stack.of_host(record.host)
    if record.power_caps_w:  # those of the host were read before any was set
        row |= {"gpu_power_cap_w": min(record.power_caps_w)}
    if record.server:
        row |= record.server.model_dump(include={"engine_build", "kv_cache_tokens", "cold_start_s", "image_digest"})
        row |= {"engine_version_found": record.server.engine_version}
        row |= stack.of_server(record.server) | of_start(record.server)
        row |= _gpus(record)
    if record.weights:
        row |= {"model_revision": record.weights.revision, "model_sha256": record.weights.sha256}
    if record.load:
        row |= {"driver_version": record.load.driver_version, "load_seed": record.load.seed}
        row |= {"request_count": record.load.request_count} if record.load.request_count else {}
    if record.busy:
        row |= record.busy.model_dump()
    row |= {"core_speed_share": core_speed_share, "core_speed_lowest_share": core_speed_lowest_share}
    return row | _host_use(record, core_speed_share)


def _gpus(record: RunRecord) -> Row:
    """How many GPUs the engine used; those of a server that is not ours are what its suite says."""
    if record.endpoint is not None:
        known = record.endpoint.known
        return {"gpus": [known.gpu] * known.gpu_count if known.gpu else None, "gpu_count": known.gpu_count or None}
    used = gpus_of(record)
    return {"gpu_count": None if used is None else len(used)}


def _host_use(record: RunRecord, core_speed_share: float | None) -> Row:
    """The columns of what other processes took; what was not measured is NULL, with the reason."""
    use = record.host_use
    if use is None:
        is_older = record.outcome == "measured"
        return {"not_measured": "recorded before other processes were measured"} if is_older else {}
    others = use.other_gpu_processes
    return {
        "other_cpu_share": use.other_cpu_share,
        "other_processes": use.others_in_words,
        "other_memory_bytes_per_s": use.other_memory_bytes_per_s,
        "other_gpu_processes": None if others is None else ", ".join(others),
        "cpu_pressure_share": use.cpu_pressure_share,
        "memory_pressure_share": use.memory_pressure_share,
        "io_pressure_share": use.io_pressure_share,
        "run_queue_mean": use.run_queue_mean,
        "core_frequency_mean_mhz": use.core_frequency_mean_mhz,
        "core_throttle_count": use.core_throttle_count,
        "core_work_ms": None if use.core_work_s is None else use.core_work_s * 1e3,
        "host_pressure": use.in_words(record.busy.steal_share if record.busy else None, core_speed_share),
        "not_measured": "; ".join(f"{name}: {why}" for name, why in sorted(use.unknown.items())) or None,
    }


def of_run(record: RunRecord) -> Row:
    """The columns of the run itself: outcome, times, lineage."""
    return {
        "suite": record.suite,
        "server_id": record.server_id,
        "order": record.order,
        "outcome": record.outcome,
        "stage": record.stage,
        "reason": record.reason,
        "failure": record.failure,
        "forced": "; ".join(record.forced) or None,
        "series_identity": list(record.series_identity) or None,
        "started_at": _utc(record.started_at),
        "ended_at": _utc(record.ended_at),
        "lease_id": record.lease.lease_id if record.lease else None,
        "usd_per_hour": record.usd_per_hour,
        "method_version": record.lineage.method_version,
        "record_version": record.record_version,
        "nightbench_version": record.lineage.nightbench_version,
        "git_commit": record.lineage.git_commit,
        **_calibration(record),
    }


def _calibration(record: RunRecord) -> Row:
    if record.calibration is None:
        return {"calibration_id": None, "not_calibrated": "measured before nights were calibrated"}
    return {"calibration_id": record.calibration.calibration_id, "not_calibrated": record.calibration.reason}


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise UnreadableResultError(f"record.json has a time without a time zone: {moment.isoformat()}")
    return moment
