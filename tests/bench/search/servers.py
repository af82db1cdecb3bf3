"""Servers with a knee and a latency law that are known, and searches of them without a night."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from bench.search.goodput import next_rate
from bench.search.probe import Probe
from bench.search.saturation import next_level
from bench.suite.search import Goodput, Saturation

TOKENS = 64


@dataclass
class KneeServer:
    """A closed loop: throughput rises with concurrency up to a knee; `sharpness` says how suddenly it stops."""

    knee: float
    sharpness: float = math.inf
    noise: float = 0.01
    seed: int = 0
    fails_from: float = math.inf
    falls: float = 0.0  # share of throughput lost with each doubling beyond the knee

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def throughput(self, concurrency: float) -> float:
        """In units of one stream's."""
        rate = min(concurrency, self.knee)
        if not math.isinf(self.sharpness):
            rate = self.knee * math.pow(math.pow(concurrency / self.knee, -self.sharpness) + 1, -1 / self.sharpness)
        return rate * math.pow(1 - self.falls, max(0.0, math.log2(concurrency / self.knee)))

    def probe(self, concurrency: int, per_slot: int = 10) -> Probe:
        seen = self.throughput(concurrency) * math.exp(self.random.normal(0, self.noise))
        count = per_slot * concurrency
        return Probe(
            scenario="users",
            scenario_id=f"c{concurrency}",
            concurrency=concurrency,
            request_count=count,
            completed=count if concurrency < self.fails_from else count // 2,
            output_throughput_tok_per_s=TOKENS * seen,
            throughput_se_share=max(self.noise, 0.01),
            e2el_p99_ms=1e3 * concurrency / seen,
        )


def sweep(asked: Saturation, server: KneeServer) -> list[Probe]:
    probes: list[Probe] = []
    while (level := next_level(asked, probes)) is not None:
        probes.append(server.probe(level))
    return probes


@dataclass
class QueueServer:
    """An open loop: requests queue for one server with a fixed service time; TTFT is the wait and `base_s`."""

    capacity_per_s: float
    base_s: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def waits_s(self, rate: float, count: int) -> tuple["np.ndarray", "np.ndarray"]:
        """When each request is sent, and what it waits until it is served."""
        sent = np.cumsum(self.random.exponential(1 / rate, count))
        service = 1 / self.capacity_per_s
        # Lindley's recursion, in closed form for a fixed service time.
        behind = sent - service * np.arange(count)
        waits = -behind + np.maximum.accumulate(behind)
        return sent, waits

    def probe(self, rate: float, count: int, bound_s: float) -> Probe:
        sent, waits = self.waits_s(rate, count)
        done = sent + waits + self.base_s + 1 / self.capacity_per_s
        return Probe(
            scenario="rate",
            scenario_id=f"r{rate}x{count}",
            request_rate_per_s=rate,
            request_count=count,
            completed=count,
            within_slo=int((waits + self.base_s <= bound_s).sum()),
            held_share=float(np.ptp(sent) / np.ptp(done)),
        )

    def goodput_per_s(self, bound_s: float, share: float) -> float:
        """The highest rate with this share within the bound, of very long loads."""
        low, high = self.capacity_per_s / 100, self.capacity_per_s
        for _ in range(12):
            middle = (low + high) / 2
            _sent, waits = self.waits_s(middle, 400_000)
            low, high = (middle, high) if (waits + self.base_s <= bound_s).mean() >= share else (low, middle)
        return (low + high) / 2


@dataclass
class LawServer:
    """An open loop: TTFT is base / (1 - rate / capacity), spread by a lognormal; beyond the capacity a queue grows."""

    capacity_per_s: float
    base_s: float = 0.1
    spread: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def probe(self, rate: float, count: int, bound_s: float) -> Probe:
        load = rate / self.capacity_per_s
        usual = self.base_s / (1 - load) if load < 1 else math.inf
        times = usual * np.exp(self.random.normal(0, self.spread, count))
        return Probe(
            scenario="rate",
            scenario_id=f"r{rate}x{count}",
            request_rate_per_s=rate,
            request_count=count,
            completed=count,
            within_slo=int((times <= bound_s).sum()),
            held_share=min(1.0, 1 / load),
        )

    def goodput_per_s(self, bound_s: float, share: float) -> float:
        usual = bound_s / math.exp(self.spread * NormalDist().inv_cdf(share))
        return self.capacity_per_s * (1 - self.base_s / usual)


def search(asked: Goodput, share: float, probe: Callable[[float, int], Probe], count: int) -> list[Probe]:
    probes: list[Probe] = []
    while (following := next_rate(asked, share, probes)) is not None:
        rate, factor = following
        probes.append(probe(rate, factor * count))
    return probes
