"""A run of our own as a claim, so that the rules for other people's files also judge it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource, Device, Metric, RequestSeries
from bench.engines.config import memory_share, parallel_sizes, parse_flags
from bench.engines.speculation import speculation_of
from bench.engines.used_gpus import used_gpus
from bench.loadgen.batch_report import BatchReport
from bench.loadgen.report import LoadReport
from bench.metrics import Ints
from bench.record import RunRecord

FORMAT = "nightbench-run"
_GIB, _MS = 1 << 30, 1e-3
# Of the row's latency columns; itl stands there by token and by event, and the claim's gaps are events.
_METRICS: dict[Metric, str] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl_event", "e2el": "e2el"}
_STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p999")


def claim_of(
    record: RunRecord,
    report: LoadReport | BatchReport,
    row: Mapping[str, Any],
    sha256: str,
    device: Device | None = None,
) -> Claim:
    """What a measured run claims: its row as people read it, and the requests behind it.

    What the server counted is not in it: a night's own rules reconcile that to the token.
    `row` has the units of the table of measurements; `sha256` is that of record.json.
    """
    asked = replace(_asked(record), spec_tokens_per_step=row.get("spec_acceptance_length"))
    lineage = ClaimSource(row["run_id"], sha256, "", FORMAT, record.record_version, "nightbench", None)
    return Claim(
        lineage=lineage,
        asked=asked,
        said=_said(record, row),
        latency_s=_latencies(row),
        device=_attributed(device, asked),
        series=_series(report),
        label=f"{record.asked.name} #{record.repeat}",
        repeat_of=_repeated(record, row),
        requests_per_slot_min=record.quality.min_requests_per_slot,
        half_width_max=record.quality.half_width_max,
        core_speed_share=row.get("core_speed_share"),
        beside=row.get("host_pressure") or "",
    )


def _repeated(record: RunRecord, row: Mapping[str, Any]) -> str:
    """What is equal for repeats in a night; the first run after a server's start is not a repeat of later ones."""
    place = " after a server start" if row["is_first_after_start"] else ""
    return f"{record.night}/{record.scenario_id}{place}"


def _attributed(device: Device | None, asked: ClaimedConfig) -> Device | None:
    """The device with the scope of its energy: unknown where the engine uses some of the sampled GPUs only."""
    if device is None or device.energy_scope is None or device.device_count == asked.gpu_count:
        return device
    return replace(device, energy_scope=None)


def _asked(record: RunRecord) -> ClaimedConfig:
    scenario, work, host = record.asked, record.asked.workload, record.host
    gpus = host.gpus if host is not None else ()
    return ClaimedConfig(
        model=scenario.model.source.removeprefix("hf:"),
        precision=scenario.model.precision,
        gpu=record.endpoint.known.gpu if record.endpoint else gpus[0] if gpus else None,
        engine=scenario.engine.name,
        engine_version=scenario.engine.version,
        model_revision=record.weights.revision if record.weights else None,
        max_model_len=scenario.engine.max_model_len,
        isl=None if work.is_replay else float(work.isl),
        osl=None if work.is_replay or work.is_embedding else float(work.osl),
        has_distinct_prompts=(work.prompts.kind == "random" and not work.is_replay) or None,
        is_speculative=speculation_of(scenario.engine.flags) is not None or None,
        concurrency=None if work.is_offline else work.concurrency,
        batch=work.concurrency if work.is_offline else None,
        request_rate_per_s=work.request_rate_per_s,
        is_open_loop=work.arrivals not in ("closed", "batch"),
        request_count=(record.load and record.load.request_count) or work.request_count,
        warmup_count=work.warmup_count,
        usd_per_hour=record.usd_per_hour or None,
        weights_gib=record.weights.bytes / _GIB if record.weights else None,
        weights_source="index" if record.weights else None,
    ).filled_from(_started(record, len(gpus)))


def _started(record: RunRecord, gpus: int) -> ClaimedConfig:
    """What the engine's own arguments say: how the model is spread, and how much memory it may take."""
    server = record.server
    if server is not None and server.endpoint is not None:
        return ClaimedConfig(gpu_count=server.endpoint.known.gpu_count or None, kv_cache_tokens=server.kv_cache_tokens)
    flags = parse_flags(server.argv if server is not None else record.asked.engine.flags)
    sizes = parallel_sizes(flags)
    dp_size = sizes.dp_size
    visible = gpus_of(record)
    used = sizes.gpu_count if visible is None else len(visible)
    kv_precision = flags.get("--kv-cache-dtype", "auto")
    return ClaimedConfig(
        # An engine that uses some of a machine's GPUs has no others; one that names more than there are contradicts it.
        gpu_count=min(used, gpus) or None,
        tp_size=sizes.tp_size if gpus else None,
        pp_size=sizes.pp_size if gpus else None,
        dp_size=dp_size if gpus else None,
        ep_size=sizes.ep_size if gpus else None,
        kv_precision=None if kv_precision == "auto" else kv_precision,
        gpu_memory_utilization=memory_share(flags),
        kv_cache_tokens=server.kv_cache_tokens * dp_size if server is not None and server.kv_cache_tokens else None,
        prefix_caching=False if "--no-enable-prefix-caching" in flags else None,
    )


def gpus_of(record: RunRecord) -> tuple[int, ...] | None:
    """The indices of the GPUs that the run's engine used; None where they are unknown, or it had no server."""
    if record.server is None or record.host is None:
        return None
    server = record.server
    return used_gpus(record.asked.engine.name, server.argv, server.environment, record.host, server.prefill_argv)


def _said(record: RunRecord, row: Mapping[str, Any]) -> ClaimedTotals:
    same = (
        *("completed", "failed", "duration_s", "total_input_tokens", "total_output_tokens"),
        *("request_throughput_per_s", "output_throughput_tok_per_s"),
    )
    return ClaimedTotals(
        **{name: row[name] for name in same},
        started_at_s=record.started_at.timestamp(),
        ended_at_s=record.ended_at.timestamp(),
        usd_per_mtok_output=row["usd_per_mtok_output"] or None,
    )


def _latencies(row: Mapping[str, Any]) -> dict[Metric, dict[str, float]]:
    found: dict[Metric, dict[str, float]] = {}
    for metric, column in _METRICS.items():
        values = {statistic: row[f"{column}_{statistic}_ms"] for statistic in _STATISTICS}
        found[metric] = {
            "median" if statistic == "p50" else statistic: value * _MS
            for statistic, value in values.items()
            if value is not None
        }
    return found


def _series(report: LoadReport | BatchReport) -> RequestSeries | None:
    if isinstance(report, BatchReport):
        return RequestSeries(iteration_s=np.array(report.iteration_s)) if report.iteration_s else None
    requests = report.requests
    good = requests.is_ok
    counts = requests.gap_count[good]
    return RequestSeries(
        input_tokens=_counted(requests.input_tokens[good]),
        output_tokens=_counted(requests.output_tokens[good]),
        start_s=requests.send_s[good],
        ttft_s=requests.ttft_s[good] if report.dimensions is None else None,
        e2el_s=requests.e2el_s[good],
        gap_s=requests.ok_gap_s,
        gap_at=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        has_event_tokens=bool((requests.event_tokens[good] >= 0).all()),
    )


def _counted(tokens: Ints) -> Ints | None:
    return None if (tokens < 0).any() else tokens
