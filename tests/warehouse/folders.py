"""Makes run folders as a night leaves them, in the meter's format, with times that come out right."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.by_name import FINISH_REASONS, SAMPLED_NAMES
from bench.host import GpuFacts, HostFacts
from bench.host_use import Busy, HostUse
from bench.machine.canary import CanaryResult, with_verdict
from bench.machine.canary_history import NIGHTS, EarlierCanary, floors_from
from bench.manifest import MANIFEST, manifest_text
from bench.record import (
    Accuracy,
    Answers,
    CalibratedLoad,
    Calibration,
    LeaseFacts,
    Lineage,
    LoadRun,
    NightRecord,
    PlannedRun,
    RunRecord,
)
from bench.server_facts import ServerFacts, Weights
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.suite import ScenarioEntry, Suite
from catalog.read import find_gpu, read_canary_floors
from tests.bench.machine.canaries import record as canary

STARTED = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)
QUALITY = Quality(min_duration_s=1.0, min_requests_per_slot=10.0)
MS_NS = 1_000_000
ORIGIN_NS = 5_000 * MS_NS  # of the meter's times, on its host's monotonic clock


@dataclass(frozen=True)
class Shape:
    """How a synthetic run went: every request takes `ttft_ms`, then a token each `gap_ms`, slot after slot."""

    requests: int = 400
    tokens: int = 8
    concurrency: int = 4
    ttft_ms: float = 20.0
    gap_ms: float = 5.0
    jitter: float = 0.0  # standard deviation of a gap, as a share of it
    failed: int = 0
    warmup: int = 2
    driver: str = "meter"
    arrivals: str = "closed"
    burstiness: float | None = None
    is_told: bool = True  # the server tells its own times with each answer
    record_version: int = 2  # of the meter's report
    event_tokens: int = 1  # tokens of each event; `tokens` counts events then
    turns: int = 1  # of a session, of which half the prompt is in the prefix cache but for the first; 1: no sessions


# Of four prompts, sixteen tokens each.
ANSWERS = Answers(
    logprob_mean=-2.0, logprob_tokens=120, greedy=tuple(tuple(range(at, at + 16)) for at in (0, 100, 200, 300))
)


# A host without other work.
QUIET = HostUse(
    other_cpu_share=0.012,
    other_processes=("sshd (pid 7) 1%",),
    other_memory_bytes_per_s=1e8,
    other_gpu_processes=(),
    cpu_pressure_share=0.1,
    memory_pressure_share=0.0,
    io_pressure_share=0.02,
    run_queue_mean=1.5,
    core_frequency_mean_mhz=2600.0,
    core_throttle_count=0,
    core_work_s=2e-4,
    core_work_slowest_s=2.2e-4,
    unknown={"gpu": "no tool"},
)


@dataclass(frozen=True)
class Told:
    """What else a record says; the defaults are those of a good run."""

    outcome: str = "measured"
    stage: str | None = None
    reason: str | None = None
    failure: str | None = None
    forced: tuple[str, ...] = ()
    engine_version: str = "0.32.0+cpu"
    usd_per_hour: float | None = 2.0
    counters: dict[str, float] = field(default_factory=dict)
    before: Answers | None = ANSWERS  # None: a run from before servers were asked
    after: Answers | None = ANSWERS
    weights_sha256: str = "1" * 64
    host_use: HostUse | None = QUIET  # None: a run from before other processes were measured
    gpu: Mapping[str, tuple[Any, ...]] | None = None  # the samples of its GPU, by the names of GPU_SAMPLES
    host: dict[str, Any] = field(default_factory=dict)  # what is otherwise about it
    server: dict[str, Any] = field(default_factory=dict)  # the same of its server


def scenario(shape: Shape = Shape(), name: str = "chat") -> Scenario:
    """The scenario a shape is a run of."""
    return suite({name: shape}).expand()[0]


def suite(shapes: dict[str, Shape], repeats: int = 1) -> Suite:
    """A suite of scenarios with these shapes."""
    entries = tuple(
        ScenarioEntry.model_validate(
            {
                "name": name,
                "isl": 16,
                "osl": shape.tokens * shape.event_tokens,
                "request_count": shape.requests,
                "warmup_count": shape.warmup,
                "driver": shape.driver,
                "arrivals": shape.arrivals,
                "burstiness": shape.burstiness,
                **(
                    {"concurrency": shape.concurrency}
                    if shape.arrivals == "closed"
                    else {"request_rate_per_s": 1000.0 / (shape.ttft_ms + shape.gap_ms * (shape.tokens - 1)) * 4}
                ),
            }
        )
        for name, shape in shapes.items()
    )
    return Suite(
        name="synthetic",
        repeats=repeats,
        machine=Machine(),
        model=Model(name="tiny", source="generated:tiny"),
        engine=Engine(
            version="0.32.0", max_model_len=4096, flags=("--no-enable-prefix-caching", "--max-num-seqs", "256")
        ),
        quality=QUALITY,
        scenarios=entries,
    )


def write_night(data: Path, night: str, shapes: dict[str, Shape], repeats: int = 1) -> NightRecord:
    """Write night.json and one lease, and no run folder yet."""
    asked = suite(shapes, repeats)
    pairs = [(scenario, repeat) for scenario in asked.expand() for repeat in range(repeats)]
    record = NightRecord(
        night=night,
        target="local",
        started_at=STARTED,
        suite=asked,
        suite_sha256="0" * 64,
        seed=1,
        runs=tuple(PlannedRun(order=at, repeat=repeat, scenario=one) for at, (one, repeat) in enumerate(pairs)),
    )
    folder = data / "runs" / night
    (folder / "leases").mkdir(parents=True)
    (folder / "night.json").write_text(record.model_dump_json())
    (folder / "leases" / "lease-1.json").write_text(json.dumps(lease()))
    write_canaries(folder)
    return record


def write_canaries(folder: Path) -> None:
    """Write a canary of a machine that was unfit, and both of the one that measured."""
    (folder / "canaries").mkdir()
    unfit = with_verdict(canary({"memory_copy": 900.0}, lease_id="lease-0"), find_gpu, read_canary_floors())
    linked = (
        CanaryResult(test="link", device=0, peer=1, value=48.0),
        CanaryResult(test="matmul_fp8", device=0, reason="RuntimeError: not supported"),
    )
    nights = [EarlierCanary(f"2026-01-{at:02}", "MI300X", "memory_copy", 4200.0) for at in range(1, NIGHTS + 1)]
    before = canary({"memory_copy": 4200.0}).model_copy(update={"floors": floors_from(nights, read_canary_floors())})
    for each in (unfit, before.model_copy(update={"results": before.results + linked}), canary({}, "after")):
        (folder / "canaries" / f"{each.lease_id}-{each.position}.json").write_text(each.model_dump_json())


def lease() -> dict[str, Any]:
    return {
        "lease_id": "lease-1",
        "cloud": "static",
        "machine_id": "machine-1",
        "usd_per_hour": 2.0,
        "kind": "gpu-mi300x1-192gb",
        "region": "tor1",
        "is_spot": False,
        "attempts": [
            _attempt(1, "atl1", "no-capacity", "422: Size is not available in this region.", None),
            _attempt(2, "tor1", "rented", None, "machine-1"),
        ],
        "stages": [
            _stage("boot", None, 0, 6),
            _stage("measure", f"{'0' * 16}/0", 6, 54),
            _stage("release", None, 54, 60),
        ],
        "rented_at": STARTED.isoformat(),
        "released_at": (STARTED + timedelta(hours=1)).isoformat(),
        "usd": 2.0,
    }


def _attempt(number: int, region: str, outcome: str, reason: str | None, machine_id: str | None) -> dict[str, Any]:
    return {
        "started_at": (STARTED + timedelta(minutes=number - 5)).isoformat(),
        "kind": "gpu-mi300x1-192gb",
        "region": region,
        "is_spot": False,
        "name": f"nb-lease-1-a{number}-x1772326800",
        "attempt": number,
        "outcome": outcome,
        "reason": reason,
        "machine_id": machine_id,
        "usd_per_hour": 2.0,
    }


def _stage(stage: str, run: str | None, begin: int, end: int) -> dict[str, Any]:
    return {
        "stage": stage,
        "run": run,
        "started_at": (STARTED + timedelta(minutes=begin)).isoformat(),
        "ended_at": (STARTED + timedelta(minutes=end)).isoformat(),
        "usd": 2.0 * (end - begin) / 60,
    }


def whole_night(data: Path, night: str = "2026-03-01", shapes: dict[str, Shape] | None = None) -> NightRecord:
    """A night in which every planned run was measured."""
    shapes = shapes or {"chat": Shape()}
    record = write_night(data, night, shapes)
    for run in record.runs:
        write_run(data, record, run, shapes[run.scenario.name])
    return record


def write_run(data: Path, night: NightRecord, run: PlannedRun, shape: Shape, told: Told = Told()) -> Path:
    """Write one run folder and its manifest; gives the folder."""
    folder = data / "runs" / night.night / run.scenario.scenario_id / str(run.repeat)
    (folder / "load").mkdir(parents=True)
    record = run_record(night, run, told)
    (folder / "record.json").write_text(record.model_dump_json())
    if told.outcome == "measured":
        files = vllm_bench_files(shape) if shape.driver == "vllm-bench" else meter_files(shape)
        for name, content in files.items():
            (folder / "load" / name).write_bytes(content)
        for name, text in metrics_texts(shape, told.counters).items():
            (folder / name).write_text(text)
        write_telemetry(folder / "telemetry.parquet", night.started_at, told.gpu)
        write_server_samples(folder / "server-samples.parquet", night.started_at)
    (folder / "server.log.gz").write_bytes(b"not read by the warehouse")
    seal(folder)
    return folder


def seal(folder: Path) -> None:
    """Write the manifest over what is there."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    hashes = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (folder / MANIFEST).write_text(manifest_text(hashes))


def run_record(night: NightRecord, run: PlannedRun, told: Told = Told()) -> RunRecord:
    """The record of a run; one that was not measured found a host and nothing else."""
    is_measured = told.outcome == "measured"
    price = LeaseFacts(lease_id="lease-1", cloud="static", machine_id="machine-1", usd_per_hour=told.usd_per_hour or 0)
    return RunRecord.model_validate(
        {
            "night": night.night,
            "suite": night.suite.name,
            "scenario_id": run.scenario.scenario_id,
            "server_id": run.scenario.server_id,
            "repeat": run.repeat,
            "order": run.order,
            "outcome": told.outcome,
            "stage": told.stage,
            "reason": told.reason,
            "failure": told.failure,
            "forced": told.forced,
            "started_at": night.started_at,
            "ended_at": night.started_at + timedelta(minutes=1),
            "asked": run.scenario,
            "series_identity": night.suite.series_identity,
            "slo": night.suite.slo_of(run.scenario.name),
            "quality": night.suite.quality,
            "host": _HOST.model_copy(update=told.host),
            "load": _LOAD if is_measured else None,
            "server": _server(told.engine_version).model_copy(update=told.server) if is_measured else None,
            "weights": Weights(revision="r1", sha256=told.weights_sha256, bytes=10) if is_measured else None,
            "host_use": told.host_use if is_measured else None,
            "busy": Busy(load_average_before=0.1, load_average_after=1.5, steal_share=0.0) if is_measured else None,
            "accuracy": _accuracy(told) if is_measured else None,
            "lease": None if told.usd_per_hour is None else price,
            "calibration": CALIBRATION if is_measured else Calibration(reason="there is no C compiler"),
            "lineage": Lineage(nightbench_version="0.1.0", git_commit="abc", suite_sha256="0" * 64),
        }
    )


def _accuracy(told: Told) -> Accuracy | None:
    return None if told.before is None else Accuracy(passage="1", before=told.before, after=told.after)


_HOST = HostFacts(
    hostname="host-1",
    kernel="6.1",
    cpu_model="Some CPU",
    cpu_count=2,
    memory_bytes=1 << 33,
    gpus=("Some GPU",),
    gpu_driver="570.1",
    numa_balancing=0,
    python_version="3.11",
    cpu_microcode="0x1",
    bios_version="1.2",
    serial_sha256="5e" * 8,
    rocm_version="6.4.2",
    cuda_version="12.8",
    gpu_details=(
        GpuFacts(
            uuid="GPU-1",
            serial_sha256="6e" * 8,
            vbios="96.0",
            partition="SPX",
            memory_partition="NPS1",
            power_cap_w=750.0,
            ecc=True,
            firmware=("GSP=570.1",),
        ),
    ),
)
CALIBRATION = Calibration(
    calibration_id="c0ffee",
    hostname="host-1",
    meter_version="0.1.0",
    loads=(CalibratedLoad(streams=1000, stream_tok_per_s=1e5, workers=1),),
)
_LOAD = LoadRun(driver="meter", driver_version="0.1.0", argv=("meter.pyz",), seed=1, exit_code=0)


def _server(version: str) -> ServerFacts:
    return ServerFacts(
        engine_version=version,
        engine_build="build-1",
        served_model="tiny",
        max_model_len=4096,
        kv_cache_tokens=1000,
        argv=("vllm", "serve"),
        environment={},
        pid=1,
        cold_start_s=12.0,
        image_digest="sha256:2",
        attention_backend="FLASH_ATTN",
    )


def meter_files(shape: Shape) -> dict[str, bytes]:
    """meter.json, requests.jsonl and events.bin of a run of this shape."""
    count = shape.warmup + shape.requests
    slot_ns = int((shape.ttft_ms + shape.gap_ms * (shape.tokens - 1)) * MS_NS)
    # Slot after slot without a pause; an open loop sends as evenly.
    send = (np.arange(count) // shape.concurrency) * slot_ns
    if shape.arrivals != "closed":
        send = np.arange(count) * (slot_ns // shape.concurrency)
    first = send + int(shape.ttft_ms * MS_NS)
    gaps = np.full((count, shape.tokens), shape.gap_ms * MS_NS)
    gaps *= np.maximum(1 + shape.jitter * np.random.default_rng(1).standard_normal(gaps.shape), 0)
    gaps[:, 0] = 0
    events = (first[:, None] + np.cumsum(gaps, axis=1)).astype("<i8")
    rows = [_meter_row(shape, at, int(send[at]), events[at]) for at in range(count)]
    columns = [
        ("event_at_ns", events.tobytes()),
        ("event_kernel_ns", events.tobytes()),  # a client that reads the moment the kernel has something
        ("event_tokens", np.full(events.size, shape.event_tokens, dtype="<i4").tobytes()),
    ]
    kinds = {"event_tokens": "<i4"}
    head = {
        "meter_record_version": 2,
        "plan": {"request_count": shape.requests, "load": {"kind": shape.arrivals}},
        "origin_utc": STARTED.isoformat(),
        "clock": {"real_minus_mono_start_ns": int(STARTED.timestamp()) * 1000 * MS_NS - ORIGIN_NS},
        "network": {"addresses": {}, "left_out": {}, "tls": None, "between": {}},
        "client": {
            "lag_p99_ms": 0.05,
            "kernel_stamp_share": 1.0,
            "core_share_max": 0.1,
            "merged_late_share": 0.0,
        }
        | _paces(shape),
        "events": {"count": events.size, "columns": [[name, kinds.get(name, "<i8")] for name, _content in columns]},
        "steady": _steady(shape, slot_ns) if shape.arrivals == "closed" else None,
        "complete": True,
    }
    if shape.record_version == 1:
        head, rows = _as_version_1(head, rows)
    return {
        "meter.json": json.dumps(head).encode(),
        "requests.jsonl": "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode(),
        "events.bin": b"".join(content for _name, content in columns),
    }


def _paces(shape: Shape) -> dict[str, float | None]:
    """How late a closed loop refilled its slots, or an open one sent."""
    is_closed = shape.arrivals == "closed"
    return {"dispatch_delay_p99_ms": None if is_closed else 0.2, "send_gap_p99_ms": 0.1 if is_closed else None}


def _steady(shape: Shape, slot_ns: int) -> dict[str, Any]:
    """All but the first and the last wave; none fails in between."""
    waves = (shape.warmup + shape.requests) // shape.concurrency
    live = float(shape.concurrency)
    return {"begin_ns": slot_ns, "end_ns": (waves - 1) * slot_ns, "live_mean": live, "live_asked": shape.concurrency}


def _as_version_1(head: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A report as the first meter wrote it."""
    new = ("window", "server_metrics")
    kept = {name: value for name, value in head.items() if name not in ("events", "steady", "meter_record_version")}
    del kept["client"]["send_gap_p99_ms"]
    return kept, [{name: value for name, value in row.items() if name not in new} for row in rows]


def _meter_row(shape: Shape, at: int, send_ns: int, events: "np.typing.NDArray[np.int64]") -> dict[str, Any]:
    is_warmup = at < shape.warmup
    # The last ones fail: they were sent, then the connection broke.
    is_ok = at < shape.warmup + shape.requests - shape.failed
    return {
        "index": at if is_warmup else at - shape.warmup,
        "phase": "warmup" if is_warmup else "measured",
        "request_id": f"r{at}",
        "intended_at_ns": send_ns,
        "send_start_ns": send_ns,
        "send_end_ns": send_ns + 10_000,
        "headers_at_ns": send_ns + 20_000,
        "first_token_at_ns": int(events[0]) if is_ok else None,
        "last_token_at_ns": int(events[-1]) if is_ok else None,
        "done_at_ns": int(events[-1]) + 50_000,
        "prompt_tokens_planned": 16,
        "prompt_tokens_counted": 16 if is_ok else None,
        "output_tokens_planned": shape.tokens,
        "output_tokens_counted": shape.tokens * shape.event_tokens if is_ok else None,
        **_turn(shape, at),
        "cached_tokens": _turn(shape, at)["cached_tokens_planned"] if is_ok else None,
        "window": None if is_warmup or shape.arrivals != "closed" else _window(shape, at),
        "server_metrics": _server_metrics(shape) if is_ok and shape.is_told else None,
        "event_first": at * shape.tokens,
        "event_count": shape.tokens,
        "outcome": "ok" if is_ok else "connection",
        "error": None if is_ok else "the server closed the connection",
    }


def _turn(shape: Shape, at: int) -> dict[str, Any]:
    if shape.turns == 1:
        return {"cached_tokens_planned": 0}
    session, turn = divmod(at, shape.turns)
    return {"conversation": session, "turn": turn, "cached_tokens_planned": 8 if turn else 0}


def _window(shape: Shape, at: int) -> str:
    wave, waves = at // shape.concurrency, (shape.warmup + shape.requests) // shape.concurrency
    return "ramp" if wave < 1 else "steady" if wave < waves - 1 else "drain"


def _server_metrics(shape: Shape) -> dict[str, float]:
    """A server that took a millisecond less to the first token than the client saw, and half of one in its queue."""
    return {
        "time_to_first_token_ms": shape.ttft_ms - 1.0,
        "queue_time_ms": 0.5,
        "generation_time_ms": shape.gap_ms * (shape.tokens - 1),
        "mean_itl_ms": shape.gap_ms,
    }


def vllm_bench_files(shape: Shape) -> dict[str, bytes]:
    """result.json of a run of this shape."""
    slot_s = (shape.ttft_ms + shape.gap_ms * (shape.tokens - 1)) / 1e3
    sends = [(at // shape.concurrency) * slot_s + 100.0 for at in range(shape.requests)]
    duration = sends[-1] + slot_s - 100.0
    result = {
        "num_prompts": shape.requests,
        "start_times": sends,
        "ttfts": [shape.ttft_ms / 1e3] * shape.requests,
        "itls": [[shape.gap_ms / 1e3] * (shape.tokens - 1)] * shape.requests,
        "errors": [""] * shape.requests,
        "input_lens": [16] * shape.requests,
        "output_lens": [shape.tokens * shape.event_tokens] * shape.requests,
        "output_throughput": shape.requests * shape.tokens * shape.event_tokens / duration,
        "duration": duration,
    }
    return {"result.json": json.dumps(result).encode()}


def metrics_texts(shape: Shape, moved: dict[str, float]) -> dict[str, str]:
    """The server's counters before and after; `moved` says where they moved otherwise than the client saw."""
    answered = shape.warmup + shape.requests - shape.failed
    deltas = {
        "generation_tokens_total": answered * shape.tokens * shape.event_tokens,
        "prompt_tokens_total": answered * 16,
        "num_preemptions_total": 0,
        "prefix_cache_queries_total": 0,
        "prefix_cache_hits_total": 0,
        "length": answered,
        **dict.fromkeys(("stop", "abort", "error", "repetition"), 0),
        "request_prefill_time_seconds_sum": answered * shape.ttft_ms / 1e3,
        "request_prefill_time_seconds_count": answered,
        **moved,
    }
    started = dict.fromkeys(deltas, 5000.0)
    ended = {name: started[name] + moved_by for name, moved_by in deltas.items()}
    return {"metrics-before.txt": _prometheus(started), "metrics-after.txt": _prometheus(ended)}


def _prometheus(values: dict[str, float]) -> str:
    lines = [
        f'vllm:request_success_total{{finished_reason="{name}"}} {value}'
        if name in FINISH_REASONS
        else f'vllm:{name}{{model_name="tiny"}} {value}'
        for name, value in values.items()
    ]
    return "# HELP vllm\n" + "\n".join(lines) + "\n"


def write_server_samples(path: Path, started_at: datetime, seconds: int = 12) -> None:
    """Two looks a second at a server with the load of four streams, then one that failed."""
    beats = np.arange(seconds * 2)
    asked = ORIGIN_NS + (beats * 500 + 100) * MS_NS
    counters = {name: [float(at) for at in beats] + [None] for name in SAMPLED_NAMES}
    live = {"requests_running": [4.0] * len(beats) + [None], "requests_waiting": [0.0] * len(beats) + [None]}
    columns = {
        "at": pa.array(
            [started_at + timedelta(seconds=at / 2) for at in range(len(beats) + 1)], pa.timestamp("us", "UTC")
        ),
        "asked_ns": [*asked.tolist(), ORIGIN_NS + seconds * 1000 * MS_NS],
        "answered_ns": [*(asked + 2 * MS_NS).tolist(), None],
        "error": [None] * len(beats) + ["timed out"],
    }
    pq.write_table(pa.table(columns | counters | live), path)


# A busy GPU, once a second from two seconds before the load to a minute after its start.
GPU_SECONDS = range(-2, 60)
GPU_SAMPLES: dict[str, tuple[Any, ...]] = {
    "index": (0,) * len(GPU_SECONDS),
    "uuid": ("GPU-1",) * len(GPU_SECONDS),
    "power_w": (600.0,) * len(GPU_SECONDS),
    "power_cap_w": (700.0,) * len(GPU_SECONDS),
    "energy_j": tuple(1e6 + 610.0 * at for at in GPU_SECONDS),
    "edge_c": (55.0,) * len(GPU_SECONDS),
    "junction_c": (70.0,) * len(GPU_SECONDS),
    "memory_c": (60.0,) * len(GPU_SECONDS),
    "clock_mhz": (1900.0,) * len(GPU_SECONDS),
    "memory_clock_mhz": (2600.0,) * len(GPU_SECONDS),
    "used_bytes": (70 << 30,) * len(GPU_SECONDS),
    "busy_share": (0.98,) * len(GPU_SECONDS),
    "memory_busy_share": (0.7,) * len(GPU_SECONDS),
    "is_throttled": (False,) * len(GPU_SECONDS),
    "throttle_reasons": ("power cap",) * len(GPU_SECONDS),
    "ecc_corrected": (3,) * len(GPU_SECONDS),
    "ecc_uncorrected": (0,) * len(GPU_SECONDS),
}


def write_telemetry(path: Path, started_at: datetime, gpu: Mapping[str, tuple[Any, ...]] | None = None) -> None:
    """Three samples of the host, the last of a host that says nothing of its engine, and those of its GPU."""
    table = pa.table(
        {
            "at": pa.array([started_at + timedelta(seconds=at) for at in range(3)], pa.timestamp("us", tz="UTC")),
            "cpu_share": [0.1, 0.9, 0.8],
            "load_average_1m": [0.1, 0.5, 0.6],
            "memory_used_bytes": [1, 2, 3],
            "steal_share": [0.0, 0.0, None],
            "engine_rss_bytes": [10, 20, None],
            "engine_cpu_s": [1.0, 2.0, None],
            "other_cpu_share": [0.0, 0.02, None],
            "cpu_pressure_share": [0.1, 0.2, None],
            "memory_pressure_share": [0.0, 0.0, None],
            "io_pressure_share": [0.0, 0.1, None],
            "run_queue": [1, 2, None],
            "core_frequency_mhz": [2600.0, 2500.0, None],
        }
    )
    if gpu is not None:
        seconds = GPU_SECONDS[: len(gpu["index"])]
        samples = {
            "at": pa.array([started_at + timedelta(seconds=at) for at in seconds], pa.timestamp("us", tz="UTC")),
            "monotonic_ns": [ORIGIN_NS + at * 1000 * MS_NS for at in seconds],
            **{f"gpu_{name}": list(values) for name, values in gpu.items()},
        }
        table = pa.concat_tables([table, pa.table(samples)], promote_options="default")
    pq.write_table(table, path)
