"""A run that nobody made: slots that send the next prompt when the last is answered, drawn from a seed.

The makers of the twins beside it print it in the words of each tool, so that every number agrees with every other.
"""

from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats, Ints

STARTED_AT_S = 1_790_000_000.0


@dataclass(frozen=True)
class Run:
    """Per-request times in seconds, in the order in which requests were sent."""

    start_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    slots: int

    @property
    def e2el_s(self) -> Floats:
        return self.ttft_s + self.tpot_s * (self.output_tokens - 1)

    @property
    def duration_s(self) -> float:
        return float((self.start_s + self.e2el_s).max() - self.start_s.min())

    @property
    def output_tok_per_s(self) -> float:
        return float(self.output_tokens.sum()) / self.duration_s

    @property
    def input_tok_per_s(self) -> float:
        return float(self.input_tokens.sum()) / self.duration_s


def closed_loop(seed: int, requests: int = 400, slots: int = 8, isl: int = 512, osl: int = 128) -> Run:
    """So many requests on so many slots, every answer of the length asked."""
    draw = np.random.default_rng(seed)
    ttft, tpot = draw.gamma(60, 0.002, requests), draw.gamma(400, 0.00003, requests)
    start, free = np.zeros(requests), np.zeros(slots)
    for at in range(requests):
        slot = int(free.argmin())
        start[at] = free[slot]
        free[slot] += ttft[at] + tpot[at] * (osl - 1)
    return Run(start + STARTED_AT_S, ttft, tpot, np.full(requests, isl), np.full(requests, osl), slots)
