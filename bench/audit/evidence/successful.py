"""A claim's good requests as arrays, and its means, whichever way the file gives them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bench.audit.claim import Claim, Metric, RequestSeries
from bench.audit.evidence.rates import stated_output_tok_per_s
from bench.metrics import Bools, Floats, Ints, known, mean_s, ratio

Number = TypeVar("Number", np.float64, np.int64)
_PER_REQUEST = ("input_tokens", "output_tokens", "is_ok", "start_s", "ttft_s", "e2el_s", "tpot_s")


@dataclass(frozen=True)
class SuccessfulRequests:
    """What a claim says of its good requests; arrays that disagree in length are none at all."""

    claim: Claim

    @cached_property
    def series(self) -> RequestSeries:
        """The arrays as the file has them; empty where it has none."""
        return self.claim.series or RequestSeries()

    @cached_property
    def lengths(self) -> dict[str, int]:
        """How many requests each array has."""
        found = {name: len(array) for name in _PER_REQUEST if (array := getattr(self.series, name)) is not None}
        at = self.series.gap_at
        return found | ({} if at is None else {"gap_at": len(at) - 1})

    @cached_property
    def is_even(self) -> bool:
        """Whether all arrays have the same number of requests, and the gaps' offsets lie inside them."""
        at, gaps = self.series.gap_at, self.series.gap_s
        if len(set(self.lengths.values())) > 1 or (at is None) != (gaps is None):
            return False
        if at is None or gaps is None:
            return True
        return len(at) > 0 and at[0] == 0 and at[-1] == len(gaps) and bool((np.diff(at) >= 0).all())

    @cached_property
    def is_good(self) -> Bools | None:
        """Which requests count; None if there is no data of requests."""
        if not self.lengths or not self.is_even:
            return None
        said = self.series.is_ok
        return np.ones(next(iter(self.lengths.values())), dtype=np.bool_) if said is None else said

    @property
    def start_s(self) -> Floats | None:
        """When each good request was sent."""
        return self._of_good(self.series.start_s)

    @property
    def ttft_s(self) -> Floats | None:
        """Of each good request."""
        return self._of_good(self.series.ttft_s)

    @property
    def e2el_s(self) -> Floats | None:
        """Of each good request."""
        return self._of_good(self.series.e2el_s)

    @property
    def input_tokens(self) -> Ints | None:
        """Of each good request."""
        return self._of_good(self.series.input_tokens)

    @property
    def output_tokens(self) -> Ints | None:
        """Of each good request."""
        return self._of_good(self.series.output_tokens)

    @cached_property
    def gap_s(self) -> Floats | None:
        """The gaps of the good requests, pooled."""
        if self.is_good is None or self.series.gap_s is None or self.series.gap_at is None:
            return None
        if self.is_good.all():
            return self.series.gap_s
        return self.series.gap_s[np.repeat(self.is_good, np.diff(self.series.gap_at))]

    @cached_property
    def gap_count(self) -> Ints | None:
        """How many gaps each good request has."""
        return None if self.series.gap_at is None else self._of_good(np.diff(self.series.gap_at))

    @property
    def event_count(self) -> Ints | None:
        """How many stream events with text each good request has; its tokens where the file has no gaps."""
        return self.output_tokens if self.gap_count is None else self.gap_count + 1

    @cached_property
    def gap_sum_s(self) -> Floats | None:
        """The sum of the gaps of each good request; 0 for one with none."""
        gaps, counts = self.gap_s, self.gap_count
        if gaps is None or counts is None:
            return None
        sums = np.zeros(len(counts))
        some = counts > 0
        if some.any():
            sums[some] = np.add.reduceat(gaps, (np.cumsum(counts) - counts)[some])
        return sums

    @cached_property
    def tpot_s(self) -> Floats | None:
        """Of each good request with two tokens or more: the client's, else (E2EL - TTFT) / (tokens - 1).

        Never from gaps.
        """
        e2el, ttft, tokens = self.e2el_s, self.ttft_s, self.output_tokens
        if tokens is None:
            return None
        several, own = tokens > 1, self._of_good(self.series.tpot_s)
        if own is not None:
            return own[several]
        if e2el is None or ttft is None:
            return None
        return (e2el - ttft)[several] / (tokens[several] - 1)

    def samples(self, metric: Metric) -> Floats | None:
        """What a statistic of this metric is of; values that are missing are left out.

        Of whole batches that are repeated, a latency is that of a batch.
        """
        e2el = self.series.iteration_s if self.e2el_s is None else self.e2el_s
        found = {"ttft": self.ttft_s, "tpot": self.tpot_s, "itl": self.gap_s, "e2el": e2el}[metric]
        return None if found is None else known(found)

    def mean(self, metric: Metric) -> float | None:
        """The mean as stated, else of the requests."""
        stated = self.claim.latency(metric, "mean")
        if stated is not None:
            return stated
        found = self.samples(metric)
        return None if found is None else mean_s(found)

    def median(self, metric: Metric) -> float | None:
        """The median as stated, else of the requests."""
        stated = self.claim.latency(metric, "median")
        stated = self.claim.latency(metric, "p50") if stated is None else stated
        if stated is not None:
            return stated
        found = self.samples(metric)
        return None if found is None or not len(found) else float(np.median(found))

    @cached_property
    def mean_osl(self) -> float | None:
        """Mean output tokens of a good request as counted, else as two rates imply it, else as requested."""
        said = self.claim.said
        counted = ratio(said.total_output_tokens, said.completed)
        if counted is None and self.output_tokens is not None and len(self.output_tokens):
            return float(self.output_tokens.mean())
        implied = ratio(stated_output_tok_per_s(self.claim), said.request_throughput_per_s)
        return counted or said.mean_output_tokens or implied or self.claim.asked.osl

    @cached_property
    def has_equal_lengths(self) -> bool:
        """Whether every answer is known to have the same number of tokens.

        A total of completed times the requested length shows it too, since no answer is longer than requested.
        """
        if self.output_tokens is not None and len(self.output_tokens):
            return bool(self.output_tokens.min() == self.output_tokens.max())
        said, asked = self.claim.said, self.claim.asked
        if asked.has_fixed_lengths is False or not said.completed or asked.osl is None:
            return False
        return said.total_output_tokens == said.completed * asked.osl

    @cached_property
    def request_rate_per_s(self) -> float | None:
        """Good requests a second."""
        said = self.claim.said
        for rate in (ratio(said.completed, said.duration_s), said.request_throughput_per_s):
            if rate is not None:
                return rate
        return ratio(stated_output_tok_per_s(self.claim), self.mean_osl)

    @property
    def has_rate_of_asked_lengths(self) -> bool:
        """Whether requests a second are known only from tokens a second and lengths that may have been drawn."""
        said, asked = self.claim.said, self.claim.asked
        counted = (said.completed, said.request_throughput_per_s, said.mean_output_tokens)
        return counted == (None, None, None) and asked.has_fixed_lengths is not True

    @property
    def is_closed_loop(self) -> bool:
        """Whether a number of requests was kept in flight."""
        asked = self.claim.asked
        return asked.concurrency is not None and not self.is_open_loop

    @property
    def is_open_loop(self) -> bool:
        """Whether requests were sent by a clock."""
        asked = self.claim.asked
        return bool(asked.is_open_loop) or (asked.is_open_loop is None and asked.request_rate_per_s is not None)

    def _of_good(self, array: npt.NDArray[Number] | None) -> npt.NDArray[Number] | None:
        return None if array is None or self.is_good is None else array[self.is_good]
