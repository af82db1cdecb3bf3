"""Every formula, once, over per-request times.

A Requests value is columnar: one entry a request in its arrays, and the gaps of all requests end to end in `gap_s`,
those of request i at `gap_s[gap_at[i]:gap_at[i + 1]]`. Times are seconds on one monotonic clock.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bench.percentiles import percentiles

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
AnyArray = TypeVar("AnyArray", Floats, Ints)

# A two-sided distribution-free 95 % interval for a percentile q exists from ln(0.025) / ln(q) samples on.
P90_MIN_SAMPLES, P95_MIN_SAMPLES, P99_MIN_SAMPLES, P999_MIN_SAMPLES = 36, 72, 368, 3688
PERCENTILE_MIN_SAMPLES: dict[float, int] = {
    50: 1,
    90: P90_MIN_SAMPLES,
    95: P95_MIN_SAMPLES,
    99: P99_MIN_SAMPLES,
    99.9: P999_MIN_SAMPLES,
}
# numpy's default: between the two nearest ranks (type 7 of Hyndman and Fan, The American Statistician 50, 1996).
PERCENTILE_ESTIMATOR = "linear-7"
UNKNOWN = -1
CANCELLED = "cancelled_as_planned"  # the meter's outcome of a request that the plan cancels


@dataclass(frozen=True)
class Requests:
    """The measured requests of one run (warm-up left out), ok and failed, in order of their index.

    Times of a request that never got that far are NaN; unreported counts are -1.
    """

    index: Ints
    intended_s: Floats  # when the schedule wanted it sent (open loop), else when its slot fell free
    send_s: Floats
    first_token_s: Floats
    last_token_s: Floats
    done_s: Floats
    input_tokens: Ints  # as counted by the server
    output_tokens: Ints  # as counted by the server
    is_ok: Bools
    outcome: tuple[str, ...]  # "ok", or the class of the failure
    error: tuple[str | None, ...]
    gap_s: Floats
    gap_at: Ints  # n + 1 offsets into gap_s
    gap_tokens: Ints  # of the event that ends each gap; -1 where the driver does not say
    event_tokens: Ints  # tokens seen in the stream's events, per request; -1 where the driver does not say

    def __len__(self) -> int:
        """How many requests, ok or not."""
        return len(self.index)

    @cached_property
    def ttft_s(self) -> Floats:
        """Time to first token: request sent to first token; NaN for a failed request."""
        return np.where(self.is_ok, self.first_token_s - self.send_s, np.nan)

    @cached_property
    def e2el_s(self) -> Floats:
        """End-to-end latency: request sent to last token; NaN for a failed request."""
        return np.where(self.is_ok, self.last_token_s - self.send_s, np.nan)

    @cached_property
    def is_cancelled(self) -> Bools:
        """Which requests the plan cancelled."""
        return np.array([outcome == CANCELLED for outcome in self.outcome], dtype=np.bool_)

    @cached_property
    def held_s(self) -> Floats:
        """How long a request held its slot: to its last token, or until the plan cancelled it; NaN for a failed one."""
        return np.where(self.is_cancelled, self.done_s - self.send_s, self.e2el_s)

    @cached_property
    def tpot_s(self) -> Floats:
        """Mean time per output token after the first; NaN for a failed request or a one-token answer."""
        gaps = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return (self.e2el_s - self.ttft_s) / gaps

    @cached_property
    def ok_gap_s(self) -> Floats:
        """The gaps between neighbouring token events of all good requests, pooled."""
        return self._of_good(self.gap_s)

    @cached_property
    def itl_s(self) -> Floats:
        """The time of each output token after the first event, of all good requests, pooled; empty where unknown.

        A gap before an event of k tokens counts as k tokens that took a k-th of it each, as SGLang counts them.
        """
        tokens = self.ok_gap_tokens
        if (tokens == 1).all():
            return self.ok_gap_s
        if (tokens == UNKNOWN).any():
            return np.empty(0)
        return np.repeat(self.ok_gap_s / np.maximum(tokens, 1), tokens)

    @cached_property
    def ok_gap_tokens(self) -> Ints:
        """The tokens of the event that ends each gap, of all good requests, pooled; -1 where unknown."""
        return self._of_good(self.gap_tokens)

    @cached_property
    def ok_gap_median_s(self) -> float:
        """The median of the gaps of all good requests; 0 of none."""
        return percentiles(self.ok_gap_s, (50,))[0] if len(self.ok_gap_s) else 0.0

    @cached_property
    def latencies_s(self) -> dict[str, Floats]:
        """Every latency by its name; NaN and left-out values do not count."""
        return {
            "ttft": self.ttft_s,
            "tpot": self.tpot_s,
            "itl": self.itl_s,
            "itl_event": self.ok_gap_s,
            "e2el": self.e2el_s,
        }

    def _of_good(self, of_gaps: AnyArray) -> AnyArray:
        return of_gaps if self.is_ok.all() else of_gaps[np.repeat(self.is_ok, self.gap_count)]

    @cached_property
    def gap_count(self) -> Ints:
        """How many gaps each request has."""
        return np.diff(self.gap_at)

    @cached_property
    def gap_sum_s(self) -> Floats:
        """The sum of each request's gaps; 0 for a request with none."""
        running = np.concatenate(([0.0], np.cumsum(self.gap_s)))
        return running[self.gap_at[1:]] - running[self.gap_at[:-1]]

    @cached_property
    def window_s(self) -> float:
        """First send to the last token of the good requests; NaN where none of them has one."""
        last_s = self.last_token_s[self.is_ok]
        if np.isnan(last_s).all():
            return float("nan")
        return float(np.nanmax(last_s) - np.nanmin(self.send_s))


LATENCIES = ("ttft", "tpot", "itl", "itl_event", "e2el")


def percentile_name(q: float) -> str:
    """`p99` of 99, `p999` of 99.9."""
    return f"p{q:g}".replace(".", "")


def percentile_s(values: Floats, q: float, samples: int) -> float | None:
    """The q-th percentile; see `percentiles_s`."""
    return percentiles_s(values, samples, (q,))[q]


def percentiles_s(
    values: Floats, samples: int, quantiles: Iterable[float] = tuple(PERCENTILE_MIN_SAMPLES)
) -> dict[float, float | None]:
    """Percentiles by linear interpolation; None for each that has too few requests behind it.

    PERCENTILE_MIN_SAMPLES says how many. `samples` counts requests, also for pooled gaps: the gaps of one request are
    not independent of each other.
    """
    clean = known(values)
    found: dict[float, float | None] = dict.fromkeys(quantiles)
    enough = [q for q in found if samples >= PERCENTILE_MIN_SAMPLES[q] and len(clean)]
    if enough:  # all at once: the values are then counted once
        found |= zip(enough, percentiles(clean, enough), strict=True)
    return found


def mean_s(values: Floats) -> float | None:
    """The mean of what is there; None where nothing is."""
    clean = known(values)
    return float(np.mean(clean)) if len(clean) else None


def known(values: Floats) -> Floats:
    """The values without those that are NaN."""
    is_unknown = np.isnan(values)
    return values[~is_unknown] if is_unknown.any() else values


def concurrency_achieved(requests: Requests) -> float | None:
    """Mean number of requests in flight, by Little's law: the sum of what they took over the window."""
    window = requests.window_s
    if np.isnan(window) or window <= 0:
        return None
    return float(np.nansum(requests.held_s) / window)


def tokens_per_event(requests: Requests) -> float | None:
    """Mean tokens of a token event, of good requests; None where the driver does not say or there was none."""
    tokens = requests.event_tokens[requests.is_ok]
    if not len(tokens) or (tokens == UNKNOWN).any():
        return None
    return float(tokens.sum() / (requests.gap_count[requests.is_ok] + 1).sum())


def output_throughput_tok_per_s(requests: Requests) -> float | None:
    """Output tokens of good requests over the window; None where an answer's number is unknown."""
    window, tokens = requests.window_s, requests.output_tokens[requests.is_ok]
    if np.isnan(window) or window <= 0 or (tokens < 0).any():
        return None
    return float(tokens.sum() / window)


def request_throughput_per_s(requests: Requests) -> float | None:
    """Good requests over the window."""
    window = requests.window_s
    if np.isnan(window) or window <= 0:
        return None
    return float(requests.is_ok.sum() / window)


def longest_gap_s(requests: Requests) -> Floats:
    """The longest gap between two token events of each request; 0 for a request with none."""
    longest = np.zeros(len(requests))
    np.maximum.at(longest, np.repeat(np.arange(len(requests)), requests.gap_count), requests.gap_s)
    return longest


def within_slo(requests: Requests, bounds_ms: Mapping[str, float]) -> Bools:
    """Which requests are good and keep every bound on their `ttft`, `tpot`, `itl` and `e2el`.

    The bound on `itl` is one on the longest gap; an answer of at most one token has no TPOT, and keeps any bound on it.
    A time that is not known otherwise keeps no bound.
    """
    has_no_tpot = (requests.output_tokens >= 0) & (requests.output_tokens <= 1)
    times_s = {
        "ttft": requests.ttft_s,
        "tpot": np.where(has_no_tpot, 0.0, requests.tpot_s),
        "itl": longest_gap_s(requests),
        "e2el": requests.e2el_s,
    }
    kept = requests.is_ok.copy()
    for name, bound_ms in bounds_ms.items():
        kept &= times_s[name] <= bound_ms / 1e3
    return kept


def goodput_per_s(requests: Requests, is_within: Bools) -> float | None:
    """Requests within the SLO over the window."""
    return ratio(float(is_within.sum()), requests.window_s)


def goodput_tok_per_s(requests: Requests, is_within: Bools) -> float | None:
    """Output tokens of the requests within the SLO over the window; None where one's number is unknown."""
    tokens = requests.output_tokens[is_within]
    return None if (tokens < 0).any() else ratio(float(tokens.sum()), requests.window_s)


def held_share(requests: Requests) -> float | None:
    """The rate at which good requests completed over that at which they were sent; below 1 a queue grew.

    From the first to the last of each, so that the time of the last answer does not count.
    """
    sent, done = requests.send_s[requests.is_ok], requests.last_token_s[requests.is_ok]
    return ratio(float(np.ptp(sent)), float(np.ptp(done))) if len(sent) > 1 else None


def ratio(above: float | None, below: float | None) -> float | None:
    """Divide; None where a part is missing or there is nothing to divide by."""
    if above is None or below is None or below == 0 or math.isnan(above) or math.isnan(below):
        return None
    return float(above / below)
