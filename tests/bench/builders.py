"""Values that tests of `bench` start from: one literal scenario, and requests made from event times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bench.host import HostFacts
from bench.host_use import Busy, HostUse
from bench.loadgen.report import LoadReport
from bench.loadgen.server_view import Scrapes, ServerTimes
from bench.metrics import (
    PERCENTILE_MIN_SAMPLES,
    Requests,
    output_throughput_tok_per_s,
    percentile_name,
    percentile_s,
)
from bench.record import (
    Accuracy,
    Answers,
    CalibratedLoad,
    Calibration,
    Lineage,
    LoadRun,
    RunRecord,
)
from bench.server_facts import ServerFacts
from bench.steady import PARTS, Steady
from bench.suite.engine import Engine
from bench.suite.machine import Machine
from bench.suite.model import Model
from bench.suite.quality import Quality
from bench.suite.scenario import Scenario
from bench.suite.workload import Workload

Row = dict[str, float | int | None]
STARTED_AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)

CLOSED = Workload(isl=128, osl=64, request_count=40, warmup_count=2, concurrency=4)
OPEN = Workload(isl=128, osl=64, request_count=40, warmup_count=2, request_rate_per_s=2.0, arrivals="poisson")
SCENARIO = Scenario(
    name="four-streams",
    machine=Machine(),
    model=Model(name="small", source="generated:small?seed=0"),
    engine=Engine(
        version="0.32.0",
        max_model_len=4096,
        flags=("--dtype", "bfloat16"),
        environment={"VLLM_CPU_KVCACHE_SPACE": "1"},
    ),
    workload=CLOSED,
)


def with_workload(workload: Workload, scenario: Scenario = SCENARIO) -> Scenario:
    return scenario.model_copy(update={"workload": workload})


HOST = HostFacts(
    hostname="host-1", kernel="6.1", cpu_model=None, cpu_count=2, memory_bytes=1 << 33, python_version="3.11"
)
LOAD = LoadRun(driver="meter", driver_version="0.1.0", argv=(), seed=1, exit_code=0)
# Of a host without other work.
HOST_USE = HostUse(other_cpu_share=0.01, other_gpu_processes=(), cpu_pressure_share=0.1, memory_pressure_share=0.0)
# Far more than any run that these builders make.
CALIBRATION = Calibration(
    calibration_id="c0ffee",
    hostname="host-1",
    meter_version="0.1.0",
    loads=(CalibratedLoad(streams=1000, stream_tok_per_s=1e5, workers=1),),
)

# Of two prompts, and of sixteen tokens each, like those of a server that tells everything it is asked.
ANSWERS = Answers(logprob_mean=-2.0, logprob_tokens=120, greedy=(tuple(range(16)), tuple(range(16, 32))))


def run_record(scenario: Scenario = SCENARIO, quality: Quality | None = None) -> RunRecord:
    return RunRecord(
        night="2026-11-21",
        suite="local",
        scenario_id=scenario.scenario_id,
        server_id=scenario.server_id,
        repeat=0,
        order=0,
        outcome="measured",
        started_at=STARTED_AT,
        ended_at=STARTED_AT,
        asked=scenario,
        quality=quality or Quality(),
        server=ServerFacts(
            engine_version=scenario.engine.version,
            engine_build=None,
            served_model="small",
            max_model_len=4096,
            kv_cache_tokens=131072,
            argv=("vllm", "serve"),
            environment={},
            pid=4711,
            cold_start_s=12.5,
        ),
        host=HOST,
        load=LOAD,
        calibration=CALIBRATION,
        busy=Busy(load_average_before=0.1, load_average_after=0.1, steal_share=0.0),
        host_use=HOST_USE,
        accuracy=Accuracy(passage="1", before=ANSWERS, after=ANSWERS),
        lineage=Lineage(nightbench_version="0.1.0", git_commit=None, suite_sha256="0" * 64),
    )


@dataclass(frozen=True)
class Answer:
    """One request as it happened: when it was sent, and when each of its tokens arrived (none: it failed)."""

    send_s: float
    token_at: tuple[float, ...]
    is_ok: bool = True
    intended_s: float | None = None


def requests_of(answers: Sequence[Answer], input_tokens: int = 128) -> Requests:
    """The columnar form of these answers."""
    gaps = [np.diff(np.array(answer.token_at)) for answer in answers]
    first = [answer.token_at[0] if answer.token_at else np.nan for answer in answers]
    last = [answer.token_at[-1] if answer.token_at else np.nan for answer in answers]
    lengths = np.array([len(answer.token_at) for answer in answers], dtype=np.int64)
    intended = [answer.send_s if answer.intended_s is None else answer.intended_s for answer in answers]
    return Requests(
        index=np.arange(len(answers), dtype=np.int64),
        intended_s=np.array(intended),
        send_s=np.array([answer.send_s for answer in answers]),
        first_token_s=np.array(first),
        last_token_s=np.array(last),
        done_s=np.array(last),
        input_tokens=np.full(len(answers), input_tokens, dtype=np.int64),
        output_tokens=lengths,
        is_ok=np.array([answer.is_ok for answer in answers], dtype=np.bool_),
        outcome=tuple("ok" if answer.is_ok else "timeout" for answer in answers),
        error=tuple(None if answer.is_ok else "no answer in time" for answer in answers),
        gap_s=np.concatenate([*gaps, np.empty(0)]),
        gap_at=np.concatenate(([0], np.cumsum([len(gap) for gap in gaps], dtype=np.int64))).astype(np.int64),
        gap_tokens=np.ones(sum(len(gap) for gap in gaps), dtype=np.int64),
        event_tokens=lengths,
    )


@dataclass(frozen=True)
class Measured:
    """A measured run as the audit sees it; `stored` replaces columns of the row that its requests would give."""

    record: RunRecord
    report: LoadReport
    deltas: dict[str, float] | None
    stored: Row
    scrapes: Scrapes | None = None

    @property
    def row(self) -> Row:
        """The stored row: times in ms, percentiles only where enough requests stand behind them."""
        requests = self.report.requests
        good = int(requests.is_ok.sum())
        row: Row = {
            "duration_s": requests.window_s,
            "output_throughput_tok_per_s": output_throughput_tok_per_s(requests),
        }
        for name, values in requests.latencies_s.items():
            for q in PERCENTILE_MIN_SAMPLES:
                value = percentile_s(values, q, good)
                row[f"{name}_{percentile_name(q)}_ms"] = None if value is None else value * 1e3
        return {**row, **self.stored}

    def with_requests(self, **columns: Any) -> "Measured":
        """The same run with some columns of its requests replaced."""
        return replace(self, report=replace(self.report, requests=replace(self.report.requests, **columns)))

    def with_deltas(self, **deltas: float) -> "Measured":
        """The same run with some server counters moved differently."""
        return replace(self, deltas={**(self.deltas or {}), **deltas})


def healthy(answers: Sequence[Answer], workload: Workload, quality: Quality | None = None) -> Measured:
    """A run in which the server counted what the client counted, warm-up included."""
    requests = requests_of(answers, input_tokens=workload.isl)
    asked, sent = workload.warmup_count, len(answers) + workload.warmup_count
    report = LoadReport(
        requests=requests,
        planned_count=workload.request_count,
        warmup_count=asked,
        warmup_input_tokens=asked * workload.isl,
        warmup_output_tokens=asked * workload.osl,
        output_throughput_tok_per_s=None,
        duration_s=None,
        lag_p99_s=0.0002,
        kernel_stamp_share=0.5,  # below one, so that the client's own lag counts
        is_complete=True,
        warmup_failed_count=0,
        cached_tokens=0,
        dispatch_delay_p99_s=None if workload.arrivals == "closed" else 0.0002,
        steady=steady_of(requests, workload.concurrency),
        tells_steady=True,
        server_times=as_seen(requests),
        core_share=0.1,
        merged_late_share=0.0,
        cache_hits=0,
    )
    deltas = {
        "generation_tokens_total": float(sent * workload.osl),
        "prompt_tokens_total": float(sent * workload.isl),
        "request_success_total": float(sent),
        "request_success_total.length": float(sent),
        "prefix_cache_queries_total": float(sent * workload.isl),
        "prefix_cache_hits_total": 0.0,
        "num_preemptions_total": 0.0,
        "request_prefill_time_seconds_sum": float(np.nansum(requests.ttft_s)),
        "request_prefill_time_seconds_count": float(len(answers)),
    }
    record = run_record(with_workload(workload), quality or Quality(min_duration_s=0.001))
    return Measured(record, report, deltas, stored={}, scrapes=looks(report.steady))


def steady_of(requests: Requests, concurrency: int | None) -> Steady | None:
    """The steady window of a load that was steady from first send to last token; None of an open loop."""
    if concurrency is None:
        return None
    begin, end = float(requests.send_s.min()), float(requests.last_token_s.max())
    return Steady(begin, end, float(concurrency), np.full(PARTS, 100.0))


def as_seen(requests: Requests) -> ServerTimes:
    """A server that made every token the moment the client had it, after a millisecond of queue."""
    queue_s = np.full(len(requests), 0.0005)
    spans = requests.e2el_s - requests.ttft_s
    return ServerTimes(requests.ttft_s - 0.001, queue_s, spans, requests.tpot_s)


def looks(steady: Steady | None, live: float | None = None, count: int = 20) -> Scrapes:
    """That many looks, evenly over the steady window, at a server that holds as many requests as the client says."""
    begin, end, held = (0.0, 1.0, 0.0) if steady is None else (steady.begin_s, steady.end_s, steady.live_mean)
    at_s = begin + (np.arange(count) + 0.5) / count * (end - begin)
    return Scrapes(at_s, np.full(count, 0.002), np.full(count, held if live is None else live))


def closed_loop(workload: Workload, service_s: Sequence[float], ttft_share: float = 0.3) -> list[Answer]:
    """What `concurrency` slots see whose next request leaves when the last answer is in."""
    free_at = [0.0] * (workload.concurrency or 1)
    answers = []
    for whole in service_s:
        slot = free_at.index(min(free_at))
        send = free_at[slot]
        token_at = np.linspace(send + whole * ttft_share, send + whole, workload.osl)
        answers.append(Answer(send, tuple(float(at) for at in token_at)))
        free_at[slot] = answers[-1].token_at[-1]
    return answers


def open_loop(workload: Workload, service_s: Sequence[float], waits_s: Sequence[float]) -> list[Answer]:
    """What a server fast enough for any number of requests answers to a drawn schedule."""
    sends = np.cumsum(waits_s)
    return [
        Answer(float(send), tuple(float(at) for at in np.linspace(send + whole * 0.3, send + whole, workload.osl)))
        for send, whole in zip(sends, service_s, strict=True)
    ]
