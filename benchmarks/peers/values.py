"""The values that the importers read of a run, beside the truth of the same run."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.audit.claim import Claim
from bench.client_error.truth import Truth, at_places
from benchmarks.peers.tool import Load

# A tool's own error on a busy host of two cores, and what it counts to a duration; a wrong unit or window is far more.
TIMES_WITHIN, RATES_WITHIN = 0.15, 0.2
SLACK_S = 0.02


@dataclass(frozen=True)
class Value:
    """One number as it was read, and as it was; None was not read."""

    name: str
    read: float | None
    true: float
    within: float  # as a share of the truth; 0: exact
    slack: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether it does not depend on a clock: a wrong one is a fault of the importer."""
        return self.within == 0

    @property
    def is_right(self) -> bool:
        """Whether it was read, and is as near as the tool can be."""
        return self.read is not None and abs(self.read - self.true) <= self.within * abs(self.true) + self.slack


def values_of(claim: Claim, truth: Truth, load: Load) -> Iterator[Value]:
    """The values of a claim that the truth server knows; the last requests are the measured ones."""
    said, asked = claim.said, claim.asked
    count = said.completed or load.request_count
    measured = np.arange(len(truth.ids))[-count:]
    real = at_places(truth, measured)
    e2el_s = (truth.ended_ns - truth.arrived_ns)[measured] / 1e9
    ttft_s = real.ttft_ms / 1e3
    tokens = np.add.reduceat(truth.tokens, truth.at[measured])
    window_s = float(truth.ended_ns[measured].max() - truth.arrived_ns[measured].min()) / 1e9
    yield Value("model", float(asked.model == "truth"), 1.0, 0.0)
    yield Value("input tokens asked", asked.isl, load.input_tokens, 0.0)
    yield Value("output tokens asked", asked.osl, load.output_tokens, 0.0)
    if load.streams:
        yield Value("requests asked", asked.request_count, load.request_count, 0.0)
        yield Value("concurrency", asked.concurrency, load.streams, 0.0)
    else:
        yield Value("request rate asked", asked.request_rate_per_s, load.rate_per_s or 0.0, 0.0)
    yield Value("loop", float(bool(asked.is_open_loop)), float(load.streams is None), 0.0)
    yield Value("requests completed", said.completed, len(measured), 0.0)
    yield Value("output tokens", said.total_output_tokens, float(tokens.sum()), 0.0)
    yield Value("input tokens", said.total_input_tokens, float(load.input_tokens * len(measured)), 0.0)
    yield Value("duration", said.duration_s, window_s, TIMES_WITHIN, SLACK_S)
    yield Value("requests/s", said.request_throughput_per_s, len(measured) / window_s, RATES_WITHIN)
    yield Value("output tok/s", said.output_throughput_tok_per_s, tokens.sum() / window_s, RATES_WITHIN)
    tpot_s = (e2el_s - ttft_s) / (tokens - 1)
    for metric, samples in (("ttft", ttft_s), ("tpot", tpot_s), ("e2el", e2el_s)):
        for statistic, found in (("mean", samples.mean()), ("median", np.median(samples)), ("max", samples.max())):
            read = claim.latency(metric, statistic)  # type: ignore[arg-type] # a literal of the list above
            yield Value(
                f"{metric} {statistic}", read, float(found), TIMES_WITHIN, SLACK_S if metric != "tpot" else 1e-3
            )
