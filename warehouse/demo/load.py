"""The requests of a simulated run: a closed loop with the times of the roofline, at the share that an engine has."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from bench.catalog.rows import CatalogModel
from bench.metrics import Floats, percentiles_s
from bench.physics import Group, decode_flops, decode_step_bytes, least_step_s, least_ttft_s, prefill_flops
from catalog.read import find_gpu, find_model

MODEL, GPU, PRECISION = "Llama-3.1-8B", "H100-SXM", "bf16"
ISL, OSL = 1024, 256  # tokens
CONCURRENCIES = (1, 4, 16, 64)
REPEATS = 3
REQUESTS_PER_SLOT, REQUESTS_MIN = 6, 40
BANDWIDTH_SHARE, COMPUTE_SHARE = 0.62, 0.45  # what engines reach of the peaks
STEP_OVERHEAD_S = 2e-3
NIGHT_NOISE, RUN_NOISE, REQUEST_NOISE = 0.003, 0.003, 0.04  # standard deviations of logarithms
QUANTILES = {"ttft": (50, 90, 99), "tpot": (50, 90, 99), "e2el": (50,)}
IDLE_W, PEAK_W = 130.0, 640.0


@dataclass(frozen=True)
class SimulatedLoad:
    """The requests of one run in the order of their slots; times in seconds, from the first send."""

    concurrency: int
    send_s: Floats
    ttft_s: Floats
    tpot_s: Floats

    @property
    def e2el_s(self) -> Floats:
        """Request sent to last token."""
        return self.ttft_s + self.tpot_s * (OSL - 1)

    @property
    def duration_s(self) -> float:
        """First send to last token."""
        return float((self.send_s + self.e2el_s).max())

    @property
    def output_tok_per_s(self) -> float:
        """Output tokens over the duration."""
        return len(self.send_s) * OSL / self.duration_s

    @property
    def bandwidth_share(self) -> float:
        """Of the peak: what the decode steps read."""
        model, group = _served()
        read = decode_step_bytes(model, group, self.concurrency, ISL + OSL / 2)
        return self.output_tok_per_s / self.concurrency * read / group.bytes_per_s

    @property
    def compute_share(self) -> float:
        """Of the peak: the operations of prompts and answers."""
        model, group = _served()
        a_request = prefill_flops(model, ISL) + OSL * decode_flops(model, ISL + OSL / 2)
        return self.output_tok_per_s / OSL * a_request / group.flops_per_s

    @property
    def power_w(self) -> float:
        """Mean power of the GPU: it rises with what is used of its peaks."""
        return IDLE_W + (PEAK_W - IDLE_W) * min(1.0, 0.8 * self.bandwidth_share + 0.9 * self.compute_share)

    def percentiles_ms(self) -> dict[str, float | None]:
        """The percentiles of each latency; None where too few requests stand behind one."""
        times = {"ttft": self.ttft_s, "tpot": self.tpot_s, "e2el": self.e2el_s}
        found = {name: percentiles_s(each, len(each), QUANTILES[name]) for name, each in times.items()}
        return {
            f"{name}_p{q:g}_ms": None if one is None else one * 1e3
            for name, each in found.items()
            for q, one in each.items()
        }


def simulate(concurrency: int, slower: float, draw: np.random.Generator) -> SimulatedLoad:
    """One run; `slower` is what each of its times is multiplied by, noise of the run not counted."""
    model, group = _served()
    slots = np.arange(concurrency)
    rounds = max(REQUESTS_PER_SLOT, -(-REQUESTS_MIN // concurrency))
    run = slower * float(np.exp(draw.normal(0, RUN_NOISE)))
    step_s = least_step_s(model, group, concurrency, ISL + OSL / 2) / BANDWIDTH_SHARE + STEP_OVERHEAD_S
    prefill_s = least_ttft_s(model, group, ISL) / COMPUTE_SHARE

    def noise() -> Floats:
        return np.exp(np.abs(draw.normal(0, REQUEST_NOISE, (rounds, concurrency))))

    # The first prompts of all slots wait for each other; later ones wait for the step that is running.
    waited = np.full((rounds, concurrency), step_s / 2)
    waited[0] = slots * prefill_s
    ttft = run * (prefill_s + waited) * noise()
    tpot = run * step_s * (1 + prefill_s * (concurrency - 1) / (OSL * step_s)) * noise()
    ends = np.cumsum(ttft + tpot * (OSL - 1), axis=0)
    send = np.vstack([np.zeros(concurrency), ends[:-1]])
    return SimulatedLoad(concurrency, send.ravel(), ttft.ravel(), tpot.ravel())


@cache
def _served() -> tuple[CatalogModel, Group]:
    model, gpu = find_model(MODEL), find_gpu(GPU)
    if model is None or gpu is None:
        raise LookupError(f"the catalogue lacks {MODEL} or {GPU}")
    return model, Group(gpu, 1, PRECISION)
