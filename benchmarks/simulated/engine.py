"""An engine with continuous batching, step by step: each step takes what the GPUs need for its bytes and operations.

Nothing of bench.physics is used: what the audit holds against a claim must not be what made it.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from bench.catalog.rows import CatalogModel, Gpu

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0}
PREFILL_TOKENS_MAX = 16_384  # of one step
GIB = 2**30
NOISES = 4096
GAP_MIN_S = 1e-5  # between two events that a client sees


class Arrivals(Protocol):
    """The requests, in the order in which they are sent, and when each next one is."""

    def first(self) -> list[tuple[float, int]]:
        """Those that no answer is awaited for: when each is sent, and its number."""
        ...

    def after(self, ended_s: float) -> tuple[float, int] | None:
        """The one sent because an answer ended then; None where there is none."""
        ...


@dataclass(frozen=True)
class Setup:
    """A model on GPUs, and which share of their peaks it reaches."""

    gpu: Gpu
    model: CatalogModel
    precision: str
    tp_size: int
    bandwidth_share: float
    compute_share: float
    overhead_s: float  # of each step: scheduling, launches, reductions
    noise: float  # deviation of a step's logarithm

    @property
    def weight_bytes(self) -> float:
        """All weights; embeddings are counted as the others."""
        return self.model.params_total * WEIGHT_BYTES[self.precision]

    @property
    def kv_tokens(self) -> int:
        """Room in the KV cache at 90 % of the memory, 3 GiB a GPU aside for activations."""
        free = self.tp_size * (0.9 * self.gpu.mem_gib_device - 3) * GIB - self.weight_bytes
        return int(free / (2 * self.model.kv_elems_per_token * self._kv_copies))

    @property
    def _kv_copies(self) -> int:
        """Copies of the cache over the GPUs: a latent has one on each, a head cannot be split."""
        return self.tp_size if self.model.mla_kv_lora else max(1, self.tp_size // self.model.n_kv_heads)

    def step_s(self, decoding: int, context: int, prefilled: int, squares: int) -> float:
        """A step's time: answers that get a token, tokens they attend to, tokens of new prompts and their squares."""
        tokens, cost = decoding + prefilled, self._cost
        read_s = cost.weights_s - cost.experts_s * cost.unused_share**tokens + cost.kv_token_s * context
        done_s = cost.token_s * tokens + cost.attended_s * (context + squares / 2)
        return max(read_s, done_s) + self.overhead_s

    @cached_property
    def _cost(self) -> "_Cost":
        model, weight_bytes = self.model, WEIGHT_BYTES[self.precision]
        bytes_per_s = self.tp_size * self.gpu.bytes_per_s * self.bandwidth_share
        flops_per_s = self.tp_size * self.gpu.flops_per_s(self.precision) * self.compute_share
        experts = model.moe_layers * model.experts * 3 * model.hidden * model.moe_ffn
        return _Cost(
            weights_s=model.params_total * weight_bytes / bytes_per_s,
            experts_s=experts * weight_bytes / bytes_per_s,
            unused_share=1 - model.experts_per_tok / model.experts if model.experts else 0.0,
            kv_token_s=2 * model.kv_elems_per_token * self._kv_copies / bytes_per_s,
            token_s=2 * model.params_active_matmul / flops_per_s,
            attended_s=4 * model.layers * model.n_heads * model.head_dim / flops_per_s,
        )


class _Cost(NamedTuple):
    """What a step's parts take: all weights, all experts less the unused ones, cache, operations."""

    weights_s: float
    experts_s: float
    unused_share: float  # of the experts, by one token
    kv_token_s: float
    token_s: float
    attended_s: float


@dataclass(frozen=True)
class Served:
    """When the engine got each request, and when it had each of its tokens: step `first_step` on, one a step."""

    received_s: list[float]
    first_step: list[int]
    step_end_s: list[float]


def serve(setup: Setup, isl: list[int], osl: list[int], arrivals: Arrivals, rng: np.random.Generator) -> Served:
    """Serve all requests, first come, first served, and as many at once as the KV cache holds."""
    noise = np.exp(rng.normal(0, setup.noise, NOISES)).tolist()
    engine = _Engine(setup, isl, osl, arrivals)
    while engine.has_work:
        engine.step(noise[len(engine.ends) % NOISES])
    return Served(engine.received, engine.first_step, engine.ends)


class _Engine:
    """The state between two steps."""

    def __init__(self, setup: Setup, isl: list[int], osl: list[int], arrivals: Arrivals) -> None:
        self.setup, self.isl, self.osl, self.arrivals = setup, isl, osl, arrivals
        self.received, self.first_step = [0.0] * len(isl), [0] * len(isl)
        self.ends: list[float] = []  # of each step
        self.now, self.context, self.room = 0.0, 0, setup.kv_tokens
        self.coming = arrivals.first()
        heapq.heapify(self.coming)
        self.waiting: deque[int] = deque()
        self.ending: list[tuple[int, int]] = []  # the step of the last token, and the request

    @property
    def has_work(self) -> bool:
        """Whether a request is to come, waits or is served."""
        return bool(self.coming or self.waiting or self.ending)

    def step(self, noise: float) -> None:
        """A token for each answer under way, and the prompts that wait, if there is room."""
        self._receive()
        decoding = len(self.ending)
        prompts = list(self._admitted())
        prefilled = sum(prompts)
        took = self.setup.step_s(decoding, self.context, prefilled, sum(each**2 for each in prompts))
        self.now += took * noise
        self.context += decoding + prefilled
        self._finish()
        self.ends.append(self.now)

    def _receive(self) -> None:
        if not self.waiting and not self.ending:
            self.now = max(self.now, self.coming[0][0])
        while self.coming and self.coming[0][0] <= self.now:
            at, one = heapq.heappop(self.coming)
            self.received[one] = at
            self.waiting.append(one)

    def _admitted(self) -> Iterator[int]:
        """The lengths of the prompts of this step."""
        left = PREFILL_TOKENS_MAX
        while self.waiting and (left == PREFILL_TOKENS_MAX or self.isl[self.waiting[0]] <= left):
            one = self.waiting[0]
            if self.isl[one] + self.osl[one] > self.room:
                return
            self.waiting.popleft()
            self.room -= self.isl[one] + self.osl[one]
            left -= self.isl[one]
            self.first_step[one] = len(self.ends)
            heapq.heappush(self.ending, (len(self.ends) + self.osl[one] - 1, one))
            yield self.isl[one]

    def _finish(self) -> None:
        """Make room, and hear what is sent because an answer ended."""
        while self.ending and self.ending[0][0] == len(self.ends):
            one = heapq.heappop(self.ending)[1]
            self.room += self.isl[one] + self.osl[one]
            self.context -= self.isl[one] + self.osl[one] - 1
            following = self.arrivals.after(self.now)
            if following is not None:
                heapq.heappush(self.coming, following)
