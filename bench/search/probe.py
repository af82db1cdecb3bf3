"""What one probe of a search showed: the numbers from which the next one follows."""

import math
from typing import Any, Self

import numpy as np

from bench.frozen import StoredValue
from bench.metrics import (
    Floats,
    Requests,
    held_share,
    output_throughput_tok_per_s,
    request_throughput_per_s,
    within_slo,
)
from bench.suite.scenario import Scenario
from bench.suite.slo import Slo

NOISE_FLOOR = 0.01  # of a throughput: what two runs on one server differ by, even where their requests do not


class Probe(StoredValue):
    """One probe. Of one whose run failed, every request counts as failed, and nothing else is known."""

    scenario: str
    scenario_id: str
    concurrency: int | None = None
    request_rate_per_s: float | None = None
    request_count: int
    completed: int = 0
    within_slo: int | None = None  # None: there is no SLO
    request_throughput_per_s: float | None = None
    output_throughput_tok_per_s: float | None = None
    throughput_se_share: float = NOISE_FLOOR  # standard error of the throughput, as a share of it
    held_share: float | None = None  # rate of completions over the rate of sends, from the first to the last of each
    ttft_p99_ms: float | None = None
    e2el_p99_ms: float | None = None
    reason: str | None = None  # why its run failed

    @classmethod
    def of(cls, scenario: Scenario, **found: Any) -> Self:
        """A probe of this scenario, with what it found."""
        work = scenario.workload
        return cls(
            scenario=scenario.name,
            scenario_id=scenario.scenario_id,
            concurrency=work.concurrency,
            request_rate_per_s=work.request_rate_per_s,
            request_count=work.request_count,
            **found,
        )

    @property
    def success_share(self) -> float:
        """The share of requests that completed."""
        return self.completed / self.request_count

    @property
    def load(self) -> float:
        """What the search varies: concurrency, or requests per second."""
        return float(self.concurrency or self.request_rate_per_s or math.nan)


def failed_probe(scenario: Scenario, reason: str) -> Probe:
    """A probe whose run has no result."""
    return Probe.of(scenario, within_slo=0, reason=reason)


def probe_of(scenario: Scenario, requests: Requests, slo: Slo | None) -> Probe:
    """A probe from what its requests were."""
    good = requests.is_ok
    count = int(good.sum())
    return Probe.of(
        scenario,
        completed=count,
        within_slo=None if slo is None else int(within_slo(requests, slo.bounds_ms).sum()),
        request_throughput_per_s=request_throughput_per_s(requests),
        output_throughput_tok_per_s=output_throughput_tok_per_s(requests),
        throughput_se_share=_standard_error(requests.e2el_s[good]),
        held_share=held_share(requests),
        ttft_p99_ms=_p99_ms(requests.ttft_s[good]),
        e2el_p99_ms=_p99_ms(requests.e2el_s[good]),
    )


def _standard_error(e2el_s: Floats) -> float:
    """Of the throughput of a closed loop, which is the requests in flight over their mean time."""
    if len(e2el_s) < 2:  # noqa: PLR2004
        return 1.0
    by_request = float(np.std(e2el_s, ddof=1) / np.mean(e2el_s)) / math.sqrt(len(e2el_s))
    return math.hypot(NOISE_FLOOR, by_request)


def _p99_ms(times_s: Floats) -> float | None:
    """Of however few requests: it is compared between probes only, and `measurements` has none where they are few."""
    return float(np.percentile(times_s, 99)) * 1e3 if len(times_s) else None
