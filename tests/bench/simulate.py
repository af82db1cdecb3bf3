"""Measurements simulated from first principles: a model on a GPU, a queue, and a client that writes what it saw.

The engine is a loop of steps. A step takes as long as the roofline says for its batch, divided by an efficiency, plus
the prefills that it starts; every running request gets one token at its end. A closed loop sends the next request of a
slot when its last one ended; an open loop sends by a Poisson process. What comes out is a Claim whose aggregates are
computed from its series as `vllm bench serve` computes them.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from bench.audit.claim import Claim, ClaimedConfig, ClaimedTotals, ClaimSource, Metric, RequestSeries, ServerCounters
from bench.catalog.rows import CatalogModel, Gpu
from bench.metrics import PERCENTILE_MIN_SAMPLES, Floats, Ints
from bench.physics import Group, checkpoint_bytes, least_step_s, needed_gib, prefill_flops, room_gib
from catalog.read import read_catalog

CATALOG = read_catalog()
GIB = 1 << 30
NEARLY_FULL = 0.94  # of the memory: more is doubted
LAUNCH_S = 2e-4  # of a step, however small the model: its kernels are launched one after another
HAND_OVER_S = 2e-4  # a client's, from an answer's end to the next request
STARTED_AT_S = 1_790_000_000.0
_ORDERED = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True)
class Load:
    """What is simulated. `concurrency` closes the loop, `rate_per_s` opens it; one of them is None."""

    model: CatalogModel
    group: Group
    isl: int = 256
    osl: int = 64
    spread: float = 0.0  # output lengths are drawn evenly from osl * (1 - spread) to osl * (1 + spread)
    concurrency: int | None = 8
    rate_per_s: float | None = None
    requests: int = 400
    efficiency: float = 0.6  # of the roofline, decode and prefill alike
    token_budget: int = 8192  # prompt tokens that one step may prefill
    seed: int = 0

    @property
    def context(self) -> float:
        """Mean context during decode."""
        return self.isl + self.osl / 2

    @property
    def prefill_s(self) -> float:
        """Seconds that one prompt adds to its step."""
        return prefill_flops(self.model, self.isl) / self.group.flops_per_s / self.efficiency

    def step_s(self, batch: int) -> float:
        """Seconds of one decode step."""
        return max(LAUNCH_S, least_step_s(self.model, self.group, batch, self.context) / self.efficiency)


def load_of(
    model: str = "Llama-3.1-8B", gpu: str = "MI300X", count: int = 1, precision: str = "bf16", **given: object
) -> Load:
    """A load by the catalogue's names."""
    found, device = CATALOG.model(f"hf:any/{model}"), CATALOG.gpu(gpu)
    assert found is not None
    assert device is not None
    return replace(Load(found, Group(device, count, precision)), **given)  # type: ignore[arg-type]


@st.composite
def loads(draw: st.DrawFn, *, is_open: bool | None = None) -> Load:
    """Loads that fit their GPUs, last longer than a minute and have enough requests to be believed."""
    gpu = draw(st.sampled_from([row for row in CATALOG.gpus if row.bw_tb_s > 1]))  # those of data centres
    model = draw(st.sampled_from(CATALOG.models))
    precision = draw(st.sampled_from(["bf16", "fp8"] if gpu.fp8_tflops else ["bf16"]))
    isl, osl = draw(st.sampled_from([32, 128, 512, 1024])), draw(st.sampled_from([32, 64, 128, 200]))
    concurrency = draw(st.sampled_from([1, 2, 4, 7, 16, 32]))
    group = fitting(model, gpu, precision, concurrency, isl + osl)
    assume(group is not None)
    assert group is not None
    load = Load(
        model,
        group,
        isl=isl,
        osl=osl,
        spread=draw(st.sampled_from([0.0, 0.2, 0.5])),
        concurrency=concurrency,
        efficiency=draw(st.floats(0.4, 0.75)),
        seed=draw(st.integers(0, 2**31)),
    )
    opened = draw(st.booleans()) if is_open is None else is_open
    return long_enough(as_open(load, draw(st.floats(0.3, 0.7))) if opened else load)


def fitting(model: CatalogModel, gpu: Gpu, precision: str, batch: int, context: int) -> Group | None:
    """The fewest of these GPUs that hold the model and its KV; None where eight do not."""
    groups = [Group(gpu, count, precision) for count in (1, 2, 4, 8)]
    return next(
        (each for each in groups if needed_gib(model, each, batch, context) <= NEARLY_FULL * room_gib(each)), None
    )


def as_open(load: Load, share: float) -> Load:
    """The same load, offered at this share of what its closed loop can do."""
    assert load.concurrency is not None
    busy_s = load.osl * load.step_s(load.concurrency) / load.concurrency + load.prefill_s
    return replace(load, concurrency=None, rate_per_s=share / busy_s)


def long_enough(load: Load, seconds: float = 75.0, per_slot: int = 12) -> Load:
    """The same load with so many requests that it lasts this long."""
    if load.rate_per_s is not None:
        return replace(load, requests=max(400, ceil(seconds * load.rate_per_s)))
    slots = load.concurrency or 1
    one_s = load.osl * (load.step_s(slots) + slots * load.prefill_s / load.osl)
    return replace(load, requests=slots * max(per_slot, ceil(seconds / one_s * 1.1)))


@dataclass(frozen=True)
class Simulated:
    """What happened: when each request was sent, in which step it got its first token, when the steps ended."""

    load: Load
    sent_s: Floats
    output_tokens: Ints
    first_step: Ints
    step_ends_s: Floats

    @property
    def series(self) -> RequestSeries:
        """What a client saw of each request, in order of sending."""
        first = self.step_ends_s[self.first_step]
        last = self.step_ends_s[self.first_step + self.output_tokens - 1]
        spans = [
            np.diff(self.step_ends_s[at : at + count])
            for at, count in zip(self.first_step, self.output_tokens, strict=True)
        ]
        return RequestSeries(
            input_tokens=np.full(len(self.sent_s), self.load.isl, dtype=np.int64),
            output_tokens=self.output_tokens,
            is_ok=np.ones(len(self.sent_s), dtype=np.bool_),
            start_s=self.sent_s,
            ttft_s=first - self.sent_s,
            e2el_s=last - self.sent_s,
            gap_s=np.concatenate(spans),
            gap_at=np.concatenate(([0], np.cumsum(self.output_tokens - 1))),
        )


def simulate(load: Load) -> Simulated:
    """Run the queue."""
    chance = np.random.default_rng(load.seed)
    low, high = max(2, round(load.osl * (1 - load.spread))), round(load.osl * (1 + load.spread))
    tokens = chance.integers(low, high + 1, load.requests)
    queue = _Queue(load, tokens, _arrivals(load, chance), chance)
    while queue.is_busy:
        queue.step()
    return Simulated(load, queue.sent_s, tokens, queue.first_step, np.array(queue.ends_s))


def _arrivals(load: Load, chance: np.random.Generator) -> Floats:
    """When an open loop sends, stretched so that the last is on time, as vLLM does; a closed one sends C at once."""
    if load.rate_per_s is None:
        return np.zeros(load.concurrency or 1)
    gaps = chance.exponential(1.0, load.requests)
    return np.asarray(np.cumsum(gaps) / gaps.sum() * load.requests / load.rate_per_s)


class _Queue:
    """The engine and whoever sends to it."""

    def __init__(self, load: Load, tokens: Ints, arrivals: Floats, chance: np.random.Generator) -> None:
        self.load, self.tokens = load, tokens
        self.sent_s = np.zeros(load.requests)
        self.sent_s[: len(arrivals)] = arrivals[: load.requests]
        self.first_step = np.zeros(load.requests, dtype=np.int64)
        self.ends_s: list[float] = []
        self._sent = min(len(arrivals), load.requests)  # those whose sending time is known
        self._waiting = deque(range(self._sent))
        self._ending: dict[int, int] = {}  # how many end in this step
        self._running = 0
        self._now_s = 0.0
        self._chance = chance
        self._prefills = max(1, load.token_budget // load.isl)
        self._step_s: dict[int, float] = {}

    @property
    def is_busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._running or self._waiting)

    def step(self) -> None:
        """Admit who waits, compute one token for everyone, let go of who has all."""
        if not self._running and self.sent_s[self._waiting[0]] > self._now_s:
            self._now_s = float(self.sent_s[self._waiting[0]])
        at, admitted = len(self.ends_s), 0
        while self._waiting and admitted < self._prefills and self.sent_s[self._waiting[0]] <= self._now_s:
            request = self._waiting.popleft()
            self.first_step[request] = at
            last = at + int(self.tokens[request]) - 1
            self._ending[last] = self._ending.get(last, 0) + 1
            admitted += 1
        self._running += admitted
        self._now_s += self._lasting_s(admitted)
        self.ends_s.append(self._now_s)
        self._let_go(self._ending.pop(at, 0))

    def _lasting_s(self, admitted: int) -> float:
        batch = self._running
        if batch not in self._step_s:
            self._step_s[batch] = self.load.step_s(batch)
        jitter = float(self._chance.uniform(1.0, 1.05))
        return (self._step_s[batch] + admitted * self.load.prefill_s) * jitter

    def _let_go(self, count: int) -> None:
        self._running -= count
        if self.load.concurrency is None:
            return
        for _ in range(min(count, self.load.requests - self._sent)):
            self.sent_s[self._sent] = self._now_s + HAND_OVER_S
            self._waiting.append(self._sent)
            self._sent += 1


def claim_of(simulated: Simulated, *, has_series: bool = True) -> Claim:
    """What the client claims; without its series only the aggregates."""
    series, load = simulated.series, simulated.load
    claim = Claim(
        lineage=ClaimSource("simulated.json", "0" * 64, "", "simulated", 1, "vllm bench serve", "0.33.0"),
        asked=_asked(load, len(simulated.sent_s), float(simulated.output_tokens.mean())),
        label="simulated",
    )
    claim = claim_from(claim, load, series)
    return claim if has_series else replace(claim, series=None)


def claim_from(claim: Claim, load: Load, series: RequestSeries) -> Claim:
    """The claim with these series and everything that follows from those that are good."""
    good = good_of(series)
    said = said_of(good, load)
    failed = 0 if series.is_ok is None else int((~series.is_ok).sum())
    return replace(
        claim,
        said=replace(said, failed=failed),
        latency_s=latencies_of(good),
        series=series,
        server=_server(good, said),
    )


def good_of(series: RequestSeries) -> RequestSeries:
    """The good requests alone."""
    if series.is_ok is None or series.is_ok.all() or series.gap_at is None or series.gap_s is None:
        return series
    counts = np.diff(series.gap_at)
    kept = {
        name: getattr(series, name)[series.is_ok]
        for name in ("input_tokens", "output_tokens", "start_s", "ttft_s", "e2el_s", "is_ok")
    }
    return replace(
        series,
        **kept,
        gap_s=series.gap_s[np.repeat(series.is_ok, counts)],
        gap_at=np.concatenate(([0], np.cumsum(counts[series.is_ok]))),
    )


def _asked(load: Load, requests: int, osl: float) -> ClaimedConfig:
    """`osl` is the mean of the lengths that were drawn."""
    model, group = load.model, load.group
    return ClaimedConfig(
        model=model.model,
        precision=group.precision,
        kv_precision="bf16",
        gpu=group.gpu.gpu,
        gpu_count=group.count,
        tp_size=group.count,
        engine="vllm",
        engine_version="0.33.0",
        max_model_len=4096,
        gpu_memory_utilization=0.9,
        isl=float(load.isl),
        osl=osl,
        has_fixed_lengths=load.spread == 0,
        concurrency=load.concurrency,
        request_rate_per_s=load.rate_per_s,
        is_open_loop=load.rate_per_s is not None,
        request_count=requests,
        warmup_count=0,
        prefix_caching=False,
        has_distinct_prompts=True,
        spec_tokens_per_step=1.0,
        weights_gib=checkpoint_bytes(model, group.precision) / GIB,
        weights_source="log",
    )


def said_of(series: RequestSeries, load: Load) -> ClaimedTotals:
    """The totals and rates of a series, as `vllm bench serve` computes them; every request is a good one."""
    assert series.start_s is not None
    assert series.e2el_s is not None
    assert series.input_tokens is not None
    assert series.output_tokens is not None
    completed = len(series.start_s)
    begin_s = 0.0 if load.rate_per_s is not None else float(series.start_s.min())
    duration_s = float((series.start_s + series.e2el_s).max()) - begin_s
    inputs, outputs = int(series.input_tokens.sum()), int(series.output_tokens.sum())
    return ClaimedTotals(
        completed=completed,
        failed=0,
        duration_s=duration_s,
        started_at_s=STARTED_AT_S,
        ended_at_s=STARTED_AT_S + duration_s,
        total_input_tokens=inputs,
        total_output_tokens=outputs,
        request_throughput_per_s=completed / duration_s,
        input_throughput_tok_per_s=inputs / duration_s,
        output_throughput_tok_per_s=outputs / duration_s,
        total_throughput_tok_per_s=(inputs + outputs) / duration_s,
        output_per_gpu_tok_per_s=outputs / duration_s / load.group.count,
        total_per_gpu_tok_per_s=(inputs + outputs) / duration_s / load.group.count,
        peak_output_tok_per_s=_peak(series),
    )


def _peak(series: RequestSeries) -> float:
    """The most tokens that came in one second, counted from the first request on."""
    assert series.gap_s is not None
    assert series.gap_at is not None
    assert series.start_s is not None
    assert series.ttft_s is not None
    first = series.start_s + series.ttft_s
    running = np.concatenate(([0.0], np.cumsum(series.gap_s)))
    counts = np.diff(series.gap_at)
    later = running[1:] - np.repeat(running[series.gap_at[:-1]], counts) + np.repeat(first, counts)
    at = np.concatenate((first, later)) - series.start_s.min()
    return float(np.bincount(at.astype(np.int64)).max())


def latencies_of(series: RequestSeries) -> Mapping[Metric, Mapping[str, float]]:
    """Every statistic of every latency, percentiles only where so many requests support them."""
    assert series.ttft_s is not None
    assert series.e2el_s is not None
    assert series.output_tokens is not None
    assert series.gap_s is not None
    several = series.output_tokens > 1
    tpot = (series.e2el_s - series.ttft_s)[several] / (series.output_tokens[several] - 1)
    samples: dict[Metric, Floats] = {
        "ttft": series.ttft_s,
        "tpot": tpot,
        "itl": series.gap_s,
        "e2el": series.e2el_s,
    }
    return {metric: _statistics(values, len(series.ttft_s)) for metric, values in samples.items()}


def _statistics(values: Floats, requests: int) -> dict[str, float]:
    found = {"mean": float(values.mean()), "median": float(np.median(values)), "std": float(values.std())}
    for q in _ORDERED:
        if requests >= PERCENTILE_MIN_SAMPLES[q]:
            found[f"p{q:g}".replace(".", "")] = float(np.percentile(values, q))
    return found


def _server(series: RequestSeries, said: ClaimedTotals) -> ServerCounters:
    """Counters that agree, and histograms of a server a little quicker than its client."""
    found = latencies_of(series)
    assert said.total_output_tokens is not None
    return ServerCounters(
        requests=float(said.completed or 0),
        prompt_tokens=float(said.total_input_tokens or 0),
        generated_tokens=float(said.total_output_tokens),
        prefix_queries=float(said.total_input_tokens or 0),
        prefix_hits=0.0,
        preemptions=0.0,
        ttft_mean_s=found["ttft"]["mean"] * 0.99,
        tpot_mean_s=found["tpot"]["mean"],
        window_s=said.duration_s,
    )
