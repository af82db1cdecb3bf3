"""The server's view of a load beside the client's: requests in flight by its gauges, and its own times of a request.

A server's gauges are those of its last finished step. A request is not in them while the server reads it, while the
step under way ends, and in the step that computes its first token. The mean of that blind time, times the rate at
which requests come (Little's law), is how many live requests the gauges cannot show.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.metrics import Floats, Requests
from bench.steady import Steady

SCRAPES_MIN = 5  # fewer say nothing about a mean: Student's t for 95 % is above 3 below that
STANDARD_ERRORS = 3.0  # of the mean of the scrapes; beyond them chance is left out (99.7 %)
# From the wire to the engine's own clock; vLLM's front end was seen to take 8 to 12 ms (vllm issue 54628).
FRONT_END_S = 0.012


@dataclass(frozen=True)
class Scrapes:
    """The server's metrics once a second, oldest first; times are seconds on the client's clock.

    NaN: no answer, or no such metric. `live` is running plus waiting.
    """

    at_s: Floats
    took_s: Floats
    live: Floats

    @property
    def failed_share(self) -> float | None:
        """The share that the server did not answer; None without any scrape."""
        return float(np.isnan(self.took_s).mean()) if len(self.took_s) else None

    @property
    def took_p50_s(self) -> float | None:
        """The median time of an answer."""
        answered = self.took_s[~np.isnan(self.took_s)]
        return float(np.median(answered)) if len(answered) else None


@dataclass(frozen=True)
class ServerTimes:
    """The server's times of each request, in the order of the client's; NaN if it reported none.

    `ttft_s` runs from scheduled to first token and `queue_s` from queued to scheduled: both are inside the client's
    TTFT, one after the other. `generation_s` is first token to last, `mean_itl_s` that over the tokens after the first.
    """

    ttft_s: Floats
    queue_s: Floats
    generation_s: Floats
    mean_itl_s: Floats


@dataclass(frozen=True)
class LiveView:
    """Requests in flight in the steady window as the scrapes in it say: mean, its standard error, how many scrapes."""

    mean: float
    standard_error: float
    count: int


def live_view(scrapes: Scrapes | None, steady: Steady | None) -> LiveView | None:
    """The scrapes of the steady window; None if there are too few for a mean."""
    if scrapes is None or steady is None:
        return None
    live = scrapes.live[(scrapes.at_s >= steady.begin_s) & (scrapes.at_s <= steady.end_s) & ~np.isnan(scrapes.live)]
    if len(live) < SCRAPES_MIN:
        return None
    return LiveView(float(live.mean()), float(live.std(ddof=1)) / math.sqrt(len(live)), len(live))


def blind_live(requests: Requests, deltas: Mapping[str, float]) -> float | None:
    """How many live requests the server's gauges cannot show on average; None where it does not time its prefills."""
    prefills = deltas.get("request_prefill_time_seconds_count")
    prefill_s = deltas.get("request_prefill_time_seconds_sum")
    if not prefills or prefill_s is None or not requests.window_s > 0:
        return None
    rate_per_s = int(requests.is_ok.sum()) / requests.window_s
    return rate_per_s * (prefill_s / prefills + requests.ok_gap_median_s + FRONT_END_S)


def disagreement(steady: Steady | None, view: LiveView | None, blind: float | None) -> float | None:
    """How many requests in flight server and client differ by, beyond what the gauges cannot show and chance."""
    if steady is None or view is None or blind is None:
        return None
    missing = steady.live_mean - view.mean
    return max(0.0, max(missing - blind, -missing) - STANDARD_ERRORS * view.standard_error)


def ttft_over_server_s(requests: Requests, times: ServerTimes) -> Floats:
    """How much longer each good request took to its first token than the server says; NaN where it does not say."""
    return requests.ttft_s - (times.ttft_s + times.queue_s)
