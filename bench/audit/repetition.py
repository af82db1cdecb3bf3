"""One prompt again and again, with distinct ones between: what an endpoint without counters does out of a cache.

The idea is that of MLPerf's TEST04: a server that computes every answer takes as long for a repeated prompt.
"""

from dataclasses import dataclass

import numpy as np

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.loadgen.report import LoadReport
from bench.metrics import Bools, Requests, ratio
from bench.record import RunRecord

LEAST = 10  # requests of each sort, for a median


@dataclass(frozen=True)
class Times:
    """Medians over some requests, in seconds; generation is first token to last."""

    ttft_s: float
    e2el_s: float
    generation_s: float


@dataclass(frozen=True)
class Repetition:
    """The repeated prompt beside the distinct ones of the same load."""

    repeated: Times
    distinct: Times

    @property
    def ttft_share(self) -> float | None:
        """How long the repeated prompt waits for its first token, over the distinct ones."""
        return ratio(self.repeated.ttft_s, self.distinct.ttft_s)

    @property
    def generation_share(self) -> float | None:
        """How long its answer takes from there, over theirs."""
        return ratio(self.repeated.generation_s, self.distinct.generation_s)


def repetition_of(record: RunRecord, report: LoadReport) -> Repetition | None:
    """What the even and odd requests took; None for other prompts, and with fewer than ten good ones of each."""
    if record.asked.workload.prompts.kind != "repeated":
        return None
    requests = report.requests
    is_same = requests.index % 2 == 0
    # The very first fills a cache.
    same, other = (requests.is_ok & chosen & (requests.index > 0) for chosen in (is_same, ~is_same))
    if min(int(same.sum()), int(other.sum())) < LEAST:
        return None
    return Repetition(_medians(requests, same), _medians(requests, other))


def _medians(requests: Requests, chosen: Bools) -> Times:
    ttft_s, e2el_s = requests.ttft_s[chosen], requests.e2el_s[chosen]
    return Times(float(np.median(ttft_s)), float(np.median(e2el_s)), float(np.median(e2el_s - ttft_s)))


def repetition_evidence(record: RunRecord, report: LoadReport) -> Evidence:
    """Near 1 where every answer was computed."""
    found = repetition_of(record, report)
    if found is None:
        return {}
    return {ev.REPEATED_GENERATION_SHARE: found.generation_share, ev.REPEATED_TTFT_SHARE: found.ttft_share}
