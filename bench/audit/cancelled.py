"""Requests that the client cancelled as planned: they do not count as failed, and the server must free them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.loadgen.report import LoadReport
from bench.metrics import ratio
from bench.record import RunRecord


@dataclass(frozen=True)
class Cancelled:
    """How many were cancelled, and of their tokens how many came and how many were left to compute."""

    count: int
    received: float
    left: float


def cancelled_of(record: RunRecord, report: LoadReport) -> Cancelled | None:
    """What was cancelled; None where the suite cancels nothing."""
    if record.asked.workload.cancel is None:
        return None
    requests = report.requests
    received = np.maximum(requests.event_tokens[requests.is_cancelled], 0)
    return Cancelled(
        len(received), float(received.sum()), float(len(received) * record.asked.workload.osl - received.sum())
    )


def overrun_share(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> float | None:
    """Tokens that the server computed and no client got, over those that cancelled requests had left.

    0: it stopped at once. 1: it computed every cancelled answer to its end. None without a counter of tokens.
    """
    found, computed = cancelled_of(record, report), (deltas or {}).get("generation_tokens_total")
    if found is None or computed is None:
        return None
    requests = report.requests
    got = float(requests.output_tokens[requests.is_ok].sum()) + (report.warmup_output_tokens or 0) + found.received
    return ratio(max(computed - got, 0.0), found.left)


def cancel_evidence(record: RunRecord, report: LoadReport, deltas: Mapping[str, float] | None) -> Evidence:
    """Empty where the suite cancels nothing."""
    if cancelled_of(record, report) is None:
        return {}
    return {ev.CANCEL_OVERRUN_SHARE: overrun_share(record, report, deltas)}
