"""Runs of a load generator against the simulated engine: what a client saw of each request, and what was asked for.

A campaign is one setup under a few loads, as a person measures it: a sweep of concurrencies or rates, with repeats.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Literal

import numpy as np

from bench.metrics import Bools, Floats, Ints
from benchmarks.simulated.engine import GAP_MIN_S, WEIGHT_BYTES, Setup, serve
from catalog.read import read_gpus, read_models

Drive = Literal["closed", "open", "batch"]
LATE_MAX_S = 1e-4  # of an event, at the client
REFUSED_S = 1e-3  # what a server takes for an error
THINKING_S = 2e-4  # from the end of an answer to the next request
STARTED_AT_S = 1_790_000_000.0
DURATION_MIN_S = 3.0
ROUND_TRIPS_S = (2e-4, 2e-3, 1e-2)
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)
LENGTHS = ((128, 32), (256, 64), (512, 128), (1024, 128), (128, 512), (2048, 32), (1000, 200), (1024, 1))
FAILED_MAX = 0.04  # more is reason enough to reject a run
GPU_COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Load:
    """What was asked of a load generator."""

    drive: Drive
    requests: int
    isl: int
    osl: int
    concurrency: int | None = None  # of a closed loop
    rate_per_s: float | None = None  # of an open one
    length_spread: float = 0.0  # lengths are uniform within so large a share around isl and osl
    failing: float = 0.0  # share of requests that the server refuses
    tokens_per_event: int = 1
    round_trip_s: float = 2e-3


@dataclass(frozen=True)
class SimulatedRun:
    """What the client saw, in the order in which requests were sent; times in seconds after `started_at_s`.

    A request that failed has no event: its answer is an error, and its tokens are 0.
    """

    setup: Setup
    load: Load
    seed: int
    started_at_s: float
    start_s: Floats
    end_s: Floats
    is_ok: Bools
    input_tokens: Ints
    output_tokens: Ints
    event_s: tuple[Floats, ...]  # with tokens, of each request

    @cached_property
    def duration_s(self) -> float:
        """First request sent to last answer ended."""
        return float(self.end_s.max() - self.start_s.min())

    @property
    def completed(self) -> int:
        """Requests with an answer."""
        return int(self.is_ok.sum())

    @property
    def failed(self) -> int:
        """Requests without."""
        return len(self.is_ok) - self.completed

    @cached_property
    def e2el_s(self) -> Floats:
        """Of each request."""
        return self.end_s - self.start_s

    @cached_property
    def ttft_s(self) -> Floats:
        """Of each request; not a number where it failed."""
        pairs = zip(self.event_s, self.start_s, strict=True)
        return np.array([events[0] - start if len(events) else np.nan for events, start in pairs])

    @cached_property
    def tpot_s(self) -> Floats:
        """Of each request; not a number where it failed or has one token."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (self.e2el_s - self.ttft_s) / (self.output_tokens - 1)
        return np.where(self.is_ok & (self.output_tokens > 1), found, np.nan)

    @cached_property
    def gaps_s(self) -> list[Floats]:
        """Between neighbouring events of each request."""
        return [np.diff(events) for events in self.event_s]

    @cached_property
    def tokens_in(self) -> int:
        """Of the prompts that were answered."""
        return int(self.input_tokens[self.is_ok].sum())

    @cached_property
    def tokens_out(self) -> int:
        """Of the answers."""
        return int(self.output_tokens[self.is_ok].sum())

    def good(self, values: Floats) -> Floats:
        """The values that are numbers, of requests that were answered."""
        found = values[self.is_ok]
        return found[~np.isnan(found)]


class _ClosedLoop:
    """As many requests at once as there are slots; a failed one is answered at once and its slot sends the next."""

    def __init__(self, load: Load, is_ok: Bools) -> None:
        self.load, self.is_ok = load, is_ok
        self.sent: dict[int, float] = {}
        self._next = count()

    def first(self) -> list[tuple[float, int]]:
        slots = self.load.concurrency or self.load.requests
        # A client opens its connections one after the other.
        found = (self._send(slot * 1e-4) for slot in range(slots))
        return [each for each in found if each is not None]

    def after(self, ended_s: float) -> tuple[float, int] | None:
        return self._send(ended_s + self.load.round_trip_s / 2 + THINKING_S)

    def _send(self, at_s: float) -> tuple[float, int] | None:
        for one in self._next:
            if one >= len(self.is_ok):
                return None
            self.sent[one] = at_s
            if self.is_ok[one]:
                return at_s + self.load.round_trip_s / 2, one
            at_s += self.load.round_trip_s + REFUSED_S + THINKING_S
        return None


class _OpenLoop:
    """Requests at random times, whatever the answers do."""

    def __init__(self, load: Load, is_ok: Bools, rng: np.random.Generator) -> None:
        gaps = rng.exponential(1 / (load.rate_per_s or 1.0), len(is_ok))
        self.sent = dict(enumerate((np.cumsum(gaps) - gaps[0]).tolist()))
        self.load, self.is_ok = load, is_ok

    def first(self) -> list[tuple[float, int]]:
        return [(at + self.load.round_trip_s / 2, one) for one, at in self.sent.items() if self.is_ok[one]]

    def after(self, ended_s: float) -> tuple[float, int] | None:  # noqa: ARG002 - the port's argument
        return None


def run(setup: Setup, load: Load, seed: int, started_at_s: float = STARTED_AT_S) -> SimulatedRun:
    """One run; the same seed gives the same."""
    rng = np.random.default_rng(seed)
    isl, osl = (_lengths(rng, mean, load) for mean in (load.isl, load.osl))
    is_ok = _answered(rng, load)
    arrivals = _OpenLoop(load, is_ok, rng) if load.drive == "open" else _ClosedLoop(load, is_ok)
    served = serve(setup, isl.tolist(), osl.tolist(), arrivals, rng)
    ends = np.array(served.step_end_s)
    sent = np.array([arrivals.sent[one] for one in range(load.requests)])
    events = tuple(
        _seen(rng, ends[first : first + tokens], load) if good else np.empty(0)
        for first, tokens, good in zip(served.first_step, osl, is_ok, strict=True)
    )
    refused = sent + load.round_trip_s + REFUSED_S
    end = np.array([seen[-1] if len(seen) else ended for seen, ended in zip(events, refused, strict=True)])
    return SimulatedRun(setup, load, seed, started_at_s, sent, end, is_ok, isl, np.where(is_ok, osl, 0), events)


def _answered(rng: np.random.Generator, load: Load) -> Bools:
    is_ok = rng.random(load.requests) >= load.failing
    is_few = (~is_ok).sum() <= FAILED_MAX * load.requests
    return is_ok if is_few else np.ones(load.requests, dtype=np.bool_)


def _lengths(rng: np.random.Generator, mean: int, load: Load) -> Ints:
    spread = int(mean * load.length_spread)
    return rng.integers(max(1, mean - spread), mean + spread, load.requests, endpoint=True)


def _seen(rng: np.random.Generator, made_s: Floats, load: Load) -> Floats:
    """When a client sees an answer's tokens: the first alone, then so many an event, each a little late."""
    last = np.arange(0, len(made_s) + load.tokens_per_event - 1, load.tokens_per_event)
    sent = made_s[np.minimum(last, len(made_s) - 1)]
    late = sent + load.round_trip_s / 2 + rng.uniform(0, LATE_MAX_S, len(sent))
    return np.maximum.accumulate(late + np.arange(len(late)) * GAP_MIN_S / len(late))


def campaigns(seed: int) -> Iterator[list[SimulatedRun]]:
    """Endless campaigns, each of one setup: a sweep of closed or open loops with two repeats of one of them."""
    rng = np.random.default_rng(seed)
    for number in count():
        setup, drive = _setup(rng), rng.choice(["closed", "closed", "open"])
        loads = list(_closed_loads(rng) if drive == "closed" else _open_loads(rng, setup))
        loads.append(loads[-1])
        began = STARTED_AT_S + number * 86_400
        yield [
            _long_enough(setup, load, int(rng.integers(2**31)), began + at * 3600.5) for at, load in enumerate(loads)
        ]


def _long_enough(setup: Setup, load: Load, seed: int, began_s: float) -> SimulatedRun:
    """The run with as many requests as it takes to last."""
    found = run(setup, load, seed, began_s)
    while found.duration_s < DURATION_MIN_S:
        load = replace(load, requests=4 * load.requests)
        found = run(setup, load, seed, began_s)
    return found


def _setup(rng: np.random.Generator) -> Setup:
    """A model on the fewest GPUs that hold it with room for a cache, at the shares of peaks that engines reach."""
    gpus = [gpu for gpu in read_gpus() if gpu.mem_gib_device >= 79]  # noqa: PLR2004 - cards of servers
    models = [model for model in read_models() if model.params_total < 500e9 and not model.vision_params]  # noqa: PLR2004
    while True:
        gpu, model = gpus[rng.integers(len(gpus))], models[rng.integers(len(models))]
        precision = str(rng.choice(list(WEIGHT_BYTES) if gpu.fp8_tflops else ["bf16"]))
        for tp_size in GPU_COUNTS:
            found = Setup(
                gpu,
                model,
                precision,
                tp_size,
                bandwidth_share=float(rng.uniform(0.35, 0.8)),
                compute_share=float(rng.uniform(0.25, 0.7)),
                overhead_s=float(rng.uniform(1e-4, 4e-3)),
                noise=float(rng.uniform(0, 0.05)),
            )
            if model.n_heads % tp_size == 0 and found.kv_tokens > 3 * max(map(sum, LENGTHS)):
                return found


def _shape(rng: np.random.Generator) -> dict[str, float]:
    isl, osl = LENGTHS[rng.integers(len(LENGTHS))]
    return {
        "isl": isl,
        "osl": osl,
        "length_spread": float(rng.choice([0.0, 0.0, 0.2, 0.8])),
        "failing": float(rng.choice([0.0, 0.0, 0.0, 0.01])),
        "tokens_per_event": int(rng.choice([1, 1, 1, 1, 1, 1, 1, 1, 1, 4])),
        "round_trip_s": float(rng.choice(ROUND_TRIPS_S)),
    }


def _closed_loads(rng: np.random.Generator) -> Iterator[Load]:
    shape, waves = _shape(rng), int(rng.choice([4, 10, 10, 20]))
    first = rng.integers(len(CONCURRENCIES) - 2)
    for concurrency in CONCURRENCIES[first : first + 3]:
        requests = max(16, waves * concurrency)
        yield Load(drive="closed", requests=requests, concurrency=concurrency, **shape)  # type: ignore[arg-type]  # of its types


def _open_loads(rng: np.random.Generator, setup: Setup) -> Iterator[Load]:
    """Rates as shares of what the setup can take."""
    shape = _shape(rng)
    probe = Load(drive="batch", requests=64, **shape)  # type: ignore[arg-type]  # of its types
    most = 64 / run(setup, probe, 0).duration_s
    for share in sorted(rng.uniform(0.1, 0.9, 3)):
        rate = float(f"{share * most:.2g}")
        yield Load(drive="open", requests=200, rate_per_s=rate, **shape)  # type: ignore[arg-type]  # of its types
