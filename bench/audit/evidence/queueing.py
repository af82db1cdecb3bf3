"""Whether the requested load was in flight, and sent on time."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed
from bench.audit.evidence.lengths import chance_of_lengths
from bench.audit.evidence.rounding import looseness
from bench.audit.evidence.successful import SuccessfulRequests
from bench.metrics import Floats, ratio
from bench.steady import PARTS, T_999, slope

NOT_REACHED = 0.85  # of the requested concurrency; below it a cold start looks like a missing load
PART_MIN = 5  # requests of a part whose mean says something
STANDARD_ERRORS = 3.0  # of a Poisson count
AUTOCORRELATION_MAX = 0.9  # of so few parts; more could not be told from a line


@dataclass(frozen=True)
class _Latency:
    """A mean E2EL, how it was found, and whether it is a mean or only near one."""

    seconds: float
    how: str
    is_mean: bool
    loose: float = 0.0


def queueing(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Little's law against the requested concurrency; empty if none was requested."""
    if claim.asked.batch is not None or (answered.is_open_loop and claim.asked.concurrency is None):
        return {}
    if not claim.asked.concurrency:
        return {ev.LITTLE_OVER_ASKED: MissingInput("the requested concurrency is unknown")}
    found = _in_flight(claim, answered)
    if not answered.is_closed_loop:
        return {column: value for column, value in found.items() if "little" in column}
    return found | _cold_start(claim, answered) | _prompts(claim)


def _in_flight(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    mean, rate, asked = _mean_e2el(answered), answered.request_rate_per_s, claim.asked.concurrency or 0
    if mean is None or rate is None:
        lacking = MissingInput("mean E2EL or request throughput is unknown")
        return {ev.LITTLE_OVER_ASKED: lacking, ev.CONCURRENCY_SHARE: lacking}
    loose = mean.loose + looseness(claim.said.duration_s or claim.said.request_throughput_per_s)
    if answered.has_rate_of_asked_lengths:
        loose += chance_of_lengths(claim)
    share = mean.seconds * rate / asked
    note = f"{mean.how} {mean.seconds:.6g} s * {rate:.6g} requests/s = {share * asked:.6g} of {asked}"
    little, reached = ev.LITTLE_OVER_ASKED, ev.CONCURRENCY_SHARE
    if not mean.is_mean:
        little, reached = ev.LITTLE_LOOSE_OVER_ASKED, ev.CONCURRENCY_LOOSE_SHARE
    return {little: Observed(share / (1 + loose), note), reached: Observed(share * (1 + loose), note)}


def _mean_e2el(answered: SuccessfulRequests) -> _Latency | None:
    return next(_means(answered), None)


def _means(answered: SuccessfulRequests) -> Iterator[_Latency]:
    """Best first. TTFT + TPOT * (tokens - 1) is the mean where all answers are equally long, else only near it."""
    mean = answered.mean("e2el")
    if mean is not None:
        yield _Latency(mean, "mean E2EL", is_mean=True, loose=looseness(mean))
    osl, ttft, tpot = answered.mean_osl, answered.mean("ttft"), answered.mean("tpot")
    if osl is not None and ttft is not None and tpot is not None:
        loose = looseness(tpot)
        yield _Latency(ttft + tpot * (osl - 1), "mean TTFT + TPOT", answered.has_equal_lengths, loose)
    median = answered.median("e2el")
    if median is not None:
        yield _Latency(median, "median E2EL", is_mean=False, loose=looseness(median))
    added = _median_sum(answered)
    if added is not None:
        yield _Latency(added, "median TTFT + TPOT", is_mean=False)


def _median_sum(answered: SuccessfulRequests) -> float | None:
    osl, ttft, tpot = answered.mean_osl, answered.median("ttft"), answered.median("tpot")
    return None if osl is None or ttft is None or tpot is None else ttft + tpot * (osl - 1)


def _cold_start(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """Concurrency over request throughput is the mean latency; a far lower median means some very slow requests.

    If the mean latency shows that fewer were in flight, that number is used: a load not reached is another finding.
    """
    rate, slots = answered.request_rate_per_s, float(claim.asked.concurrency or 0)
    slots = min(slots, claim.asked.request_count or slots)
    median, column = answered.median("e2el"), ev.IMPLIED_OVER_MEDIAN_E2EL
    if median is None:
        median, column = _median_sum(answered), ev.IMPLIED_OVER_MEDIAN_SUM
    if rate is None or not rate or median is None:
        return {ev.IMPLIED_OVER_MEDIAN_E2EL: MissingInput("request throughput or median E2EL is unknown")}
    mean = _mean_e2el(answered)
    if mean is not None and mean.is_mean and mean.seconds * rate < NOT_REACHED * slots:
        slots = mean.seconds * rate
    value = ratio(slots / rate, median)
    if value is None:
        return {column: MissingInput("the median E2EL is 0")}
    note = f"{slots:.6g} / {rate:.6g} requests/s = {slots / rate:.6g} s, median {median:.6g} s"
    return {column: Observed(value / (1 + looseness(median)), note)}


def _prompts(claim: Claim) -> EvidenceByColumn:
    """Requests over those that its suite requires, else over ten a slot.

    One slot has neither ramp nor drain, so without a suite its column never rejects.
    """
    count, slots = claim.asked.request_count, claim.asked.concurrency or 0
    count = claim.said.completed if count is None else count
    if count is None:
        return {ev.REQUESTS_OVER_REQUIRED: MissingInput("the planned number of requests is unknown")}
    required = claim.requests_per_slot_min
    if slots == 1 and required is None:
        return {ev.REQUESTS_ONE_AT_A_TIME: Observed(float(count), f"{count} requests, one at a time")}
    return {
        ev.REQUESTS_OVER_REQUIRED: Observed(count / ((required or 10) * slots), f"{count} requests for {slots} slots")
    }


def first_iteration(_claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """The first of repeated iterations over the median of the others; nothing where none were repeated."""
    times = answered.series.iteration_s
    if times is None:
        return {}
    rest = float(np.median(times[1:])) if len(times) > 1 else 0.0
    if rest <= 0:
        return {ev.FIRST_ITERATION_OVER_REST: MissingInput("there is no second iteration")}
    note = f"first {times[0]:.6g} s, median of the other {len(times) - 1} {rest:.6g} s"
    return {ev.FIRST_ITERATION_OVER_REST: Observed(float(times[0]) / rest, note)}


def offered(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    """The rate at which an open loop sent requests over the requested rate, and whether requests queued up."""
    if not answered.is_open_loop:
        return {}
    return _sent(claim, answered) | _rising(answered)


def _sent(claim: Claim, answered: SuccessfulRequests) -> EvidenceByColumn:
    asked, sent, how = claim.asked.request_rate_per_s, claim.said.request_rate_sent_per_s, "stated"
    loose = looseness(sent, asked)
    start = answered.start_s
    if sent is None and start is not None and len(start) > 1:
        span = float(np.nanmax(start) - np.nanmin(start))
        sent, how = ratio(len(start) - 1, span), f"{len(start)} requests in {span:.6g} s"
        loose = _stray(claim, len(start))
    share = ratio(sent, asked)
    if share is None or sent is None:
        return {ev.RATE_SENT_SHARE: MissingInput("the requested rate or the send times are unknown")}
    return {ev.RATE_SENT_SHARE: Observed(share * (1 + loose), f"{sent:.6g} of {asked:.6g} requests/s: {how}")}


def _stray(claim: Claim, count: int) -> float:
    """How far a Poisson process of so many arrivals strays by itself; vLLM stretches its own to end on time."""
    tool = claim.lineage.tool or ""
    return 1 / count if tool.lower().startswith("vllm") else STANDARD_ERRORS / sqrt(count)


def _rising(answered: SuccessfulRequests) -> EvidenceByColumn:
    """How much TTFT and the number in flight rose through the window, by the lower end of its 99.9 % interval."""
    start, ttft, e2el = answered.start_s, answered.ttft_s, answered.e2el_s
    lacking = MissingInput("the send times and latencies of enough requests are missing")
    if start is None or ttft is None or e2el is None or not len(start):
        return {ev.RISE_SHARE: lacking}
    at = np.argsort(start, kind="stable")
    begun = start[at]
    in_flight = np.arange(len(at)) - np.searchsorted(np.sort(start + e2el), begun)
    early = e2el[at][: max(1, len(at) // PARTS)]
    filled = begun >= begun[0] + float(np.nanmedian(early))  # before that it fills from empty
    if filled.sum() < PARTS * PART_MIN:
        return {ev.RISE_SHARE: lacking}
    risen = {"TTFT": _rise(ttft[at][filled]), "requests in flight": _rise(in_flight[filled].astype(np.float64))}
    name = max(risen, key=lambda each: risen[each])
    return {ev.RISE_SHARE: Observed(risen[name], f"{name}, as a share of its mean")}


def _rise(values: Floats) -> float:
    parts = np.array([part.mean() for part in np.array_split(values[~np.isnan(values)], PARTS)])
    line = slope(parts)
    return 0.0 if line is None else line.share - T_999 * line.standard_error * _widened(line.autocorrelation)


def _widened(autocorrelation: float) -> float:
    """How much wider an interval is where each part resembles the one before it, as a queue's lengths do.

    Such parts are worth (1 - r) / (1 + r) times as many independent ones, as in an autoregressive series of order 1.
    """
    shared = min(max(0.0, autocorrelation), AUTOCORRELATION_MAX)
    return sqrt((1 + shared) / (1 - shared))
