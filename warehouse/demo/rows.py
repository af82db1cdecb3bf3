"""The rows of a simulated night, in the tables and columns of a real one; what was not simulated is NULL."""

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from bench.audit.evidence.evidence import Observed
from bench.audit.judge import finding_of
from bench.audit.rules import BY_COLUMN
from bench.audit.rules.rule import judge
from bench.cost.lease_cost import BETWEEN
from bench.evidence_columns import MBU, MFU, OTHER_CPU_OVER_ALLOWED
from bench.metrics import PERCENTILE_ESTIMATOR
from bench.record import METHOD_VERSION
from warehouse.demo.load import (
    CONCURRENCIES,
    GPU,
    ISL,
    MODEL,
    NIGHT_NOISE,
    OSL,
    PRECISION,
    REPEATS,
    SimulatedLoad,
    simulate,
)
from warehouse.demo.story import NIGHTS, SimulatedNight
from warehouse.rows.finding_row import finding_row
from warehouse.rows.measurement_results import usd_per_mtok
from warehouse.rows.row_ids import run_ids
from warehouse.rows.run_folder import RunId
from warehouse.schema.columns import COLUMNS, Table
from warehouse.schema.row import Row

SUITE, CLOUD, KIND, REGION = "simulated", "simulated", "simulated-h100x1", "nowhere"
USD_PER_HOUR = 3.39
SEED = 20260803
BUSY_NIGHT, BUSY_RUN, BUSY_SHARE, ALLOWED_SHARE = NIGHTS - 1, 4, 0.11, 0.05
OUT_OF_MEMORY = "the server ended while it started: CUDA out of memory (simulated)"
# Seconds of each stage of the machine before and after its runs.
BEFORE_S = {"boot": 170, "software": 95, "model": 140, "calibrate": 25, "serve": 75}
BETWEEN_S, RELEASE_S = 6, 20
Rows = dict[Table, list[Row]]


def night_rows(night: SimulatedNight) -> Rows:
    """Every table of the night that has rows; the same of each call."""
    draw = np.random.default_rng((SEED, night.at))
    slower = night.slower * float(np.exp(draw.normal(0, NIGHT_NOISE)))
    found: Rows = {"measurements": [], "requests": [], "findings": [], "stages": []}
    now = night.started_at
    for stage, seconds in BEFORE_S.items():
        found["stages"].append(_stage(night, stage, None, now, seconds))
        now += timedelta(seconds=seconds)
    for order, (concurrency, repeat) in enumerate((one, at) for at in range(REPEATS) for one in CONCURRENCIES):
        place = RunId(night.name, _scenario_id(concurrency), repeat)
        planned = _planned(night, place, order, concurrency, now)
        if night.is_failed:
            found["measurements"].append(planned | _failed(order))
            continue
        load = simulate(concurrency, slower, draw)
        is_busy = (night.at, order) == (BUSY_NIGHT, BUSY_RUN)
        found["measurements"].append(planned | _measured(night, load, now, is_busy=is_busy))
        found["requests"] += _requests(place, load)
        found["findings"] += _findings(place, load, is_busy=is_busy)
        found["stages"].append(_stage(night, "measure", place.run_id, now, load.duration_s))
        now += timedelta(seconds=load.duration_s)
        found["stages"].append(_stage(night, BETWEEN, None, now, BETWEEN_S))
        now += timedelta(seconds=BETWEEN_S)
    found["stages"].append(_stage(night, "release", None, now, RELEASE_S))
    return found | _rental(night, now + timedelta(seconds=RELEASE_S))


def with_every_column(table: Table, rows: list[Row]) -> list[Row]:
    """The rows with NULL in each column that they lack."""
    nothing: Row = dict.fromkeys(column.name for column in COLUMNS[table])
    return [nothing | row for row in rows]


def _scenario_id(concurrency: int) -> str:
    return hashlib.sha256(f"{SUITE} {concurrency}".encode()).hexdigest()[:16]


def _planned(night: SimulatedNight, place: RunId, order: int, concurrency: int, at: datetime) -> Row:
    return run_ids(place) | {
        "suite": SUITE,
        "scenario": f"chat-{concurrency}",
        "order": order,
        "is_control": False,
        "model": MODEL,
        "model_source": "simulated",
        "catalog_model": MODEL,
        "precision": PRECISION,
        "engine": "vllm",
        "engine_version_asked": night.engine_version,
        "isl": ISL,
        "osl": OSL,
        "concurrency_asked": concurrency,
        "arrivals": "closed",
        "driver": "simulated",
        "request_count": len(simulate(concurrency, 1.0, np.random.default_rng(0)).send_s),
        "max_other_cpu_share": ALLOWED_SHARE,
        "machine_kind": KIND,
        "started_at": at,
        "lease_id": _lease_id(night),
        "usd_per_hour": USD_PER_HOUR,
        "method_version": METHOD_VERSION,
        "host": night.host,
        "gpus": [GPU],
        "catalog_gpu": GPU,
        "gpu_count": 1,
        "gpu_driver": night.gpu_driver,
    }


def _failed(order: int) -> Row:
    """The first run fails, and the others are not run."""
    if order == 0:
        return {"outcome": "failed", "verdict": "failed", "stage": "serve", "reason": OUT_OF_MEMORY}
    not_run = {"outcome": "not-run", "verdict": "not-run", "stage": "serve", "started_at": None}
    return not_run | {"reason": f"not started: {OUT_OF_MEMORY}"}


def _measured(night: SimulatedNight, load: SimulatedLoad, at: datetime, *, is_busy: bool) -> Row:
    count, throughput = len(load.send_s), load.output_tok_per_s
    energy_j = load.power_w * load.duration_s
    other = BUSY_SHARE if is_busy else 0.01
    return {
        "outcome": "measured",
        "verdict": "suspect" if is_busy else "accepted",
        "is_only_noisy": is_busy,
        "is_first_after_start": False,
        "engine_version_found": night.engine_version,
        "ended_at": at + timedelta(seconds=load.duration_s),
        "completed": count,
        "failed": 0,
        "duration_s": load.duration_s,
        "total_input_tokens": count * ISL,
        "total_output_tokens": count * OSL,
        "output_throughput_tok_per_s": throughput,
        "concurrency_achieved": float(load.e2el_s.sum()) / load.duration_s,
        "percentile_estimator": PERCENTILE_ESTIMATOR,
        **load.percentiles_ms(),
        "usd_per_mtok_output": usd_per_mtok(USD_PER_HOUR, throughput),
        "power_mean_w": load.power_w,
        "energy_j": energy_j,
        "joules_per_output_token": energy_j / (count * OSL),
        "gpu_telemetry": "simulated",
        "other_cpu_share": other,
        "other_processes": f"{other:.1%} of the cores: unattended-upgr (simulated)" if is_busy else f"{other:.1%}",
        "cpu_pressure_share": 0.14 if is_busy else 0.004,
        "memory_pressure_share": 0.0,
        "steal_share": 0.0,
        "load_average_before": 1.2,
        "load_average_after": 9.6 if is_busy else 2.1,
    }


def _requests(place: RunId, load: SimulatedLoad) -> Iterator[Row]:
    ids = run_ids(place)
    arrays = (load.send_s, load.ttft_s * 1e3, load.tpot_s * 1e3, load.e2el_s * 1e3)
    for at, (send_s, ttft_ms, tpot_ms, e2el_ms) in enumerate(zip(*(each.tolist() for each in arrays), strict=True)):
        times = {"send_s": send_s, "ttft_ms": ttft_ms, "tpot_ms": tpot_ms, "e2el_ms": e2el_ms}
        yield ids | times | {"request_index": at, "outcome": "ok", "input_tokens": ISL, "output_tokens": OSL}


def _findings(place: RunId, load: SimulatedLoad, *, is_busy: bool) -> Iterator[Row]:
    seen = {
        MBU: Observed(load.bandwidth_share, f"of {GPU}, simulated"),
        MFU: Observed(load.compute_share, f"of {GPU}, simulated"),
        OTHER_CPU_OVER_ALLOWED: Observed(BUSY_SHARE / ALLOWED_SHARE if is_busy else 0.2, "unattended-upgr (simulated)"),
    }
    for column, observed in seen.items():
        rule = BY_COLUMN[column]
        yield run_ids(place) | finding_row(finding_of(rule, observed, judge(rule, observed.value)))


def _lease_id(night: SimulatedNight) -> str:
    return f"simulated-{night.at}"


def _stage(night: SimulatedNight, stage: str, run_id: str | None, at: datetime, seconds: float) -> Row:
    return {
        "night": night.name,
        "lease_id": _lease_id(night),
        "stage": stage,
        "run_id": run_id,
        "started_at": at,
        "ended_at": at + timedelta(seconds=seconds),
        "duration_s": float(seconds),
        "usd": seconds / 3600 * USD_PER_HOUR,
    }


def _rental(night: SimulatedNight, ended: datetime) -> Rows:
    ids: Row = {"night": night.name, "lease_id": _lease_id(night), "cloud": CLOUD, "kind": KIND, "region": REGION}
    ids |= {"is_spot": False, "usd_per_hour": USD_PER_HOUR, "machine_id": f"machine-{night.at}"}
    billed_h = (ended - night.started_at).total_seconds() / 3600
    rented = {"attempt_count": 1, "rented_at": night.started_at, "released_at": ended, "usd": billed_h * USD_PER_HOUR}
    attempt = {"attempt": 1, "started_at": night.started_at, "name": f"nb-{night.at}", "outcome": "rented"}
    return {"leases": [ids | rented], "attempts": [ids | attempt]}
