"""Whether an open load was sent as scheduled: its rate, and how late its requests were."""

import math

import numpy as np

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.loadgen.report import LoadReport
from bench.metrics import Requests, ratio
from bench.suite.workload import Workload

DELAY_S = 1e-3  # twice the difference between runs on quiet hosts
GAP_SHARE = 0.01  # a delay so far below the mean time between two requests leaves the arrivals what they are


def offered_evidence(work: Workload, report: LoadReport) -> Evidence:
    """The share of the scheduled rate that was sent; None of fewer than two requests."""
    requests = report.requests
    planned = requests.intended_s[~np.isnan(requests.intended_s)]
    # Against the drawn schedule, not the mean rate: forty Poisson arrivals stray by a sixth all by themselves.
    # A driver that does not keep its schedule leaves only the rate.
    by_rate = (len(requests) - 1) / (work.request_rate_per_s or math.inf)
    asked = float(planned.max() - planned.min()) if len(planned) else by_rate
    return {ev.RATE_OFFERED_SHARE: ratio(asked, _span_s(requests))}


def delay_evidence(report: LoadReport) -> Evidence:
    """The p99 delay from due to sent over the allowed one: 1 ms, or 1 % of the mean time between two sends if more.

    None of a closed loop, where no request is due.
    """
    requests, delay_s = report.requests, report.dispatch_delay_p99_s
    if delay_s is None:
        return {ev.DISPATCH_DELAY_OVER_ALLOWED: None}
    gap_s = _span_s(requests) / max(len(requests) - 1, 1)
    return {ev.DISPATCH_DELAY_OVER_ALLOWED: ratio(delay_s, max(DELAY_S, GAP_SHARE * gap_s))}


def _span_s(requests: Requests) -> float:
    """Seconds from the first send to the last."""
    return float(np.nanmax(requests.send_s) - np.nanmin(requests.send_s)) if len(requests) else 0.0
