"""When a number may be believed: evidence columns, and the bounds they are judged by.

Evidence is one number each, near zero or one, or inside a range, for every way a measurement can be wrong; None where
an input is missing. A Rule declares the two bounds of one column as data: inside `passing` it passes, inside
`tolerated` it is a warning, outside it fails. warehouse/expectations.py has great-expectations judge by the same rules.

Bounds are those of the project's audit table, after InferenceX, MAD, aiperf and LoadGen practice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from bench.calibration import CORE_SHARE, MERGED_LATE_SHARE
from bench.envelope import calibrated_share
from bench.load import Planned, Report
from bench.metrics import LATENCIES, PERCENTILE_MIN_SAMPLES, Ints, concurrency_achieved, percentile_name
from bench.record import RunRecord
from bench.server_view import Scrapes, blind_live, disagreement, live_view, ttft_over_server_s
from bench.steady import slope

Verdict = Literal["accepted", "suspect", "rejected", "failed", "not-run"]
Status = Literal["PASS", "WARN", "FAIL", "NOT-CHECKABLE"]
Evidence = dict[str, float | None]
# (lowest, highest), None for no bound.
Range = tuple[float | None, float | None]

E2EL_TOLERANCE_S = 1e-3
E2EL_TOLERANCE_SHARE = 0.01
LAG_TOLERANCE_S = 1e-3
LAG_TOLERANCE_SHARE = 0.02
DISPATCH_MS = 1.0  # it warns and no more: every time is counted from the real sending
# A hidden cap costs whole streams; this part of one is left to the hand-over from request to request.
HAND_OVER_STREAMS = 0.05
DRIFT_SHARE = 0.10  # twice what a quiet host's runs differ by among each other


@dataclass(frozen=True)
class Rule:
    """One reason to doubt a measurement.

    `tolerated` None: nothing outside `passing` fails, it only warns. `loop` says to which kind of load it applies,
    `driver` to which load driver, and `needs_exact_prompts` that it says nothing of prompts whose length is only
    approximate; a rule that does not apply is left out, it is not NOT-CHECKABLE. `lacking`
    says why it could not be checked, in words of the measurement's columns.
    """

    code: str
    column: str
    family: str
    passing: Range
    tolerated: Range | None
    sentence: str
    loop: Literal["closed", "open", "any"] = "any"
    driver: Literal["meter", "any"] = "any"
    needs_exact_prompts: bool = False
    is_required: bool = True
    lacking: str | None = None

    def applies(self, loop: str, driver: str, *, is_exact: bool = True) -> bool:
        """Whether this rule is about runs of this loop (`closed` or `open`), driver and exactness of prompts."""
        return (
            self.loop in ("any", loop) and self.driver in ("any", driver) and (is_exact or not self.needs_exact_prompts)
        )


EXACT_ONE: Range = (1.0, 1.0)
ZERO: Range = (0.0, 0.0)
SERVER_PASSING: Range = (0.98, 1.02)
SERVER_TOLERATED: Range = (0.95, 1.15)

RULES: tuple[Rule, ...] = (
    Rule("failure_rate", "ev_failure_share", "completeness", ZERO, (0.0, 0.05), "{value:.1%} of the requests failed"),
    Rule(
        "incomplete",
        "ev_answered_share",
        "completeness",
        EXACT_ONE,
        (0.95, 1.0),
        "{value:.1%} of the planned requests were answered or failed",
    ),
    Rule(
        "duration_short",
        "ev_duration_over_required",
        "completeness",
        (1.0, None),
        (1 / 60, None),
        "the window is {value:.2f} times as long as this suite asks for",
    ),
    Rule(
        "derived_mismatch",
        "ev_throughput_rel",
        "arithmetic",
        (0.0, 0.001),
        (0.0, 0.001),
        "tokens over time differ from the stated throughput by {value:.2%}",
    ),
    Rule(
        "e2el_identity",
        "ev_e2el_broken_share",
        "arithmetic",
        (0.0, 0.01),
        (0.0, 0.05),
        "in {value:.1%} of the requests TTFT plus all gaps is not the end-to-end latency",
    ),
    Rule(
        "percentile_order",
        "ev_percentile_disorder",
        "arithmetic",
        ZERO,
        ZERO,
        "{value:.0f} percentiles are smaller than the one below them",
    ),
    Rule(
        "little_excess",
        "ev_little_over_asked",
        "queueing",
        (None, 1.02),
        (None, 1.10),
        "{value:.2f} times the asked concurrency was in flight: more than is possible",
        loop="closed",
    ),
    Rule(
        "concurrency_not_reached",
        "ev_concurrency_share",
        "queueing",
        (0.85, None),
        (0.5, None),
        "only {value:.0%} of the asked concurrency was in flight",
        loop="closed",
    ),
    Rule(
        "cold_start_contamination",
        "ev_implied_over_median_e2el",
        "queueing",
        (None, 1.2),
        (None, 2.0),
        "concurrency over request throughput is {value:.2f} times the median latency: a cold start is inside",
        loop="closed",
    ),
    Rule(
        "live_not_held",
        "ev_steady_live_share",
        "queueing",
        (0.99, None),
        (0.95, None),
        "only {value:.1%} of the asked concurrency was in flight in the steady window",
        loop="closed",
        driver="meter",
    ),
    Rule(
        "steady_drift",
        "ev_steady_drift_share",
        "queueing",
        (0.0, DRIFT_SHARE),
        None,
        "throughput changed by at least {value:.0%} from begin to end of the steady window",
        loop="closed",
        driver="meter",
        is_required=False,
    ),
    Rule(
        "dispatch_late",
        "ev_dispatch_delay_p99_ms",
        "queueing",
        (None, DISPATCH_MS),
        None,
        "one request in a hundred was sent {value:.1f} ms or more after it was due",
        loop="open",
        driver="meter",
    ),
    Rule(
        "rate_not_offered",
        "ev_rate_offered_share",
        "queueing",
        (0.99, None),
        (0.8, None),
        "only {value:.0%} of the planned request rate was sent",
        loop="open",
    ),
    Rule(
        "osl_not_reached",
        "ev_osl_ratio",
        "asked-found",
        (0.99, 1.01),
        (0.9, 1.1),
        "answers have {value:.3f} times the asked output length",
    ),
    Rule(
        "isl_mismatch",
        "ev_isl_ratio",
        "asked-found",
        (0.99, 1.01),
        (0.9, 1.1),
        "prompts have {value:.3f} times the asked input length",
        needs_exact_prompts=True,
    ),
    Rule(
        "engine_version_conflict",
        "ev_engine_version_conflict",
        "asked-found",
        ZERO,
        ZERO,
        "the server is of another version than the suite asks for",
    ),
    Rule(
        "chunk_token_ratio",
        "ev_chunk_token_ratio",
        "arithmetic",
        (0.99, 1.01),
        (0.9, 1.1),
        "{value:.3f} tokens were seen in the stream for each that was counted: times between tokens are not known",
    ),
    Rule(
        "client_server_mismatch",
        "ev_server_client_tokens_ratio",
        "client-server",
        SERVER_PASSING,
        SERVER_TOLERATED,
        "the server counted {value:.3f} times the client's output tokens",
    ),
    Rule(
        "client_server_mismatch_prompt",
        "ev_server_client_prompt_ratio",
        "client-server",
        SERVER_PASSING,
        SERVER_TOLERATED,
        "the server counted {value:.3f} times the client's prompt tokens",
    ),
    Rule(
        "client_server_mismatch_requests",
        "ev_server_client_requests_ratio",
        "client-server",
        SERVER_PASSING,
        SERVER_TOLERATED,
        "the server finished {value:.3f} times the client's requests",
    ),
    Rule(
        "token_count_drift",
        "ev_server_client_tokens_diff",
        "client-server",
        ZERO,
        ZERO,
        "the server counted {value:+.0f} output tokens that the client cannot account for",
        driver="meter",
    ),
    Rule(
        "prompt_count_drift",
        "ev_server_client_prompt_diff",
        "client-server",
        ZERO,
        ZERO,
        "the server counted {value:+.0f} prompt tokens that the client cannot account for",
        driver="meter",
    ),
    Rule(
        "request_count_drift",
        "ev_server_client_requests_diff",
        "client-server",
        ZERO,
        ZERO,
        "the server finished {value:+.0f} requests that the client cannot account for",
        driver="meter",
    ),
    Rule(
        "live_disagreement",
        "ev_live_disagreement_share",
        "client-server",
        (0.0, 0.01),
        (0.0, 0.05),
        "client and server differ by {value:.1%} of the asked concurrency in what was in flight",
        loop="closed",
        driver="meter",
        is_required=False,
    ),
    Rule(
        "server_unwatched",
        "ev_scrapes_failed_share",
        "client-server",
        (0.0, 0.05),
        None,
        "the server did not answer {value:.0%} of the looks at its counters during the load",
        is_required=False,
    ),
    Rule(
        "ttft_below_server",
        "ev_ttft_below_server_share",
        "client-server",
        ZERO,
        ZERO,
        "{value:.1%} of the requests had their first token sooner than the server says it made it",
        driver="meter",
        is_required=False,
    ),
    Rule(
        "tpot_disagreement",
        "ev_tpot_over_server",
        "client-server",
        (0.9, 1.1),
        (0.75, 1.25),
        "the client's time a token is {value:.2f} times the server's own",
        driver="meter",
        is_required=False,
    ),
    Rule(
        "cached_tokens_drift",
        "ev_cached_tokens_diff",
        "client-server",
        ZERO,
        None,
        "the server's prefix cache had {value:+.0f} hits more than its answers tell of",
        driver="meter",
        is_required=False,
    ),
    Rule(
        "server_restarted",
        "ev_counters_fell",
        "client-server",
        ZERO,
        ZERO,
        "{value:.0f} of the server's counters fell: it was restarted inside the run",
    ),
    Rule(
        "server_errors",
        "ev_server_errors",
        "client-server",
        ZERO,
        None,
        "the server aborted {value:.0f} requests",
    ),
    Rule(
        "prefix_cache_contamination",
        "ev_prefix_hit_share",
        "client-server",
        (0.0, 0.01),
        (0.0, 0.10),
        "{value:.1%} of the prompt tokens met the prefix cache otherwise than planned",
        needs_exact_prompts=True,
    ),
    Rule("preempted", "ev_preemptions", "client-server", ZERO, None, "{value:.0f} requests were preempted"),
    Rule(
        "too_few_prompts",
        "ev_requests_over_required",
        "statistics",
        (1.0, None),
        (0.2, None),
        "{value:.2f} times the requests a slot that this suite asks for",
        loop="closed",
    ),
    Rule(
        "tail_unsupported",
        "ev_unsupported_percentiles",
        "statistics",
        ZERO,
        ZERO,
        "{value:.0f} percentiles are given that this many requests cannot support",
    ),
    Rule(
        "client_bound",
        "ev_client_lag_over_allowed",
        "client",
        (0.0, 1.0),
        None,
        "client-bound: it read {value:.1f} times later than allowed, and its own delay is in the numbers; "
        "give it more workers, or a host with more cores",
        driver="meter",
    ),
    Rule(
        "client_bound_core",
        "ev_client_core_share",
        "client",
        (0.0, CORE_SHARE),
        None,
        "client-bound: its busiest core was {value:.0%} busy; give it more workers, or a host with more cores",
        driver="meter",
    ),
    Rule(
        "client_bound_merged",
        "ev_client_merged_late_share",
        "client",
        (0.0, MERGED_LATE_SHARE),
        None,
        "client-bound: {value:.1%} of the tokens came in one read with another because the client was late, "
        "and only the last one's time is known; give it more workers, or a host with more cores",
        driver="meter",
    ),
    Rule(
        "client_bound_envelope",
        "ev_client_calibrated_share",
        "client",
        (1.0, None),
        None,
        "client-bound: it was calibrated for {value:.2f} times this load on this host; `nightbench calibrate` says "
        "where it fails: give it more workers, or a host with more cores",
        driver="meter",
        lacking="not calibrated: {not_calibrated}",
    ),
)

EVIDENCE_COLUMNS = tuple(rule.column for rule in RULES)
# How many required rules lack an input; judged like any other column.
NOT_CHECKABLE = "ev_not_checkable"


def judge(rule: Rule, value: float | None) -> Status:
    """What one rule says of one value; NaN counts as missing."""
    if value is None or math.isnan(value):
        return "NOT-CHECKABLE"
    if _inside(rule.passing, value):
        return "PASS"
    return "WARN" if rule.tolerated is None or _inside(rule.tolerated, value) else "FAIL"


def _inside(bounds: Range, value: float) -> bool:
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)


def verdict(statuses: Mapping[str, Status]) -> Verdict:
    """The verdict of a measured run from what its rules say, by code; no rules at all is never accepted."""
    required = {rule.code for rule in RULES if rule.is_required}
    if not statuses:
        return "suspect"
    if "FAIL" in statuses.values():
        return "rejected"
    unclear = [code for code, status in statuses.items() if status == "NOT-CHECKABLE" and code in required]
    return "suspect" if unclear or "WARN" in statuses.values() else "accepted"


def evidence(
    record: RunRecord,
    report: Report,
    measured: Mapping[str, float | int | None],
    deltas: Mapping[str, float] | None,
    scrapes: Scrapes | None = None,
) -> Evidence:
    """Every evidence column of one measured run.

    `measured` is the row as it will be stored (its units: ms, tok/s), so that what is judged is what people read;
    `deltas` are the server's counters after less before, None where they could not be read; `scrapes` is what it said
    in between.
    """
    columns: Evidence = dict.fromkeys(EVIDENCE_COLUMNS)
    columns |= _completeness(record, report, measured)
    columns |= _arithmetic(report, measured)
    columns |= _queueing(record, report)
    columns |= _asked_found(record, report)
    columns |= _client_server(report, deltas)
    columns |= _reconciled(record, report, deltas)
    columns |= _steady(record, report)
    columns |= _server_view(record, report, deltas, scrapes)
    columns |= _statistics(record, report, measured)
    columns |= _client(record, report)
    loop = loop_of(record)
    driver = record.asked.workload.driver
    is_exact = record.asked.workload.prompts.has_exact_length
    required = [rule for rule in RULES if rule.is_required and rule.applies(loop, driver, is_exact=is_exact)]
    lacking = [rule for rule in required if columns[rule.column] is None]
    return {**columns, NOT_CHECKABLE: float(len(lacking))}


def loop_of(record: RunRecord) -> str:
    """`closed` or `open`, as the rules speak of it."""
    return "closed" if record.asked.workload.arrivals == "closed" else "open"


def _ratio(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or below == 0 or math.isnan(above) or math.isnan(below):
        return None
    return float(above / below)


def _completeness(record: RunRecord, report: Report, measured: Mapping[str, float | int | None]) -> Evidence:
    total = len(report.requests)
    good = int(report.requests.is_ok.sum())
    return {
        "ev_failure_share": _ratio(total - good, total),
        "ev_answered_share": _ratio(total, report.planned_count),
        "ev_duration_over_required": _ratio(measured["duration_s"], record.quality.min_duration_s),
    }


def _arithmetic(report: Report, measured: Mapping[str, float | int | None]) -> Evidence:
    requests = report.requests
    stated = report.output_throughput_tok_per_s or measured["output_throughput_tok_per_s"]
    duration = report.duration_s or measured["duration_s"]
    tokens = float(requests.output_tokens[requests.is_ok].sum())
    product = None if stated is None or duration is None else stated * duration
    residual = np.abs(requests.ttft_s + requests.gap_sum_s - requests.e2el_s)[requests.is_ok]
    allowed = np.maximum(E2EL_TOLERANCE_S, E2EL_TOLERANCE_SHARE * requests.e2el_s[requests.is_ok])
    seen = requests.event_tokens[requests.is_ok]
    # A driver that does not say how many tokens an event has leaves only the number of events.
    events = float((requests.gap_count + 1)[requests.is_ok].sum() if (seen < 0).any() else seen.sum())
    return {
        "ev_throughput_rel": None if product is None or not tokens else abs(product - tokens) / max(product, tokens),
        # Not `residual > allowed`: that would let a good request without its times pass.
        "ev_e2el_broken_share": float(np.mean(~(residual <= allowed))) if len(residual) else None,
        "ev_percentile_disorder": _disorder(measured),
        "ev_chunk_token_ratio": _ratio(events, tokens),
    }


def _disorder(measured: Mapping[str, float | int | None]) -> float:
    count = 0
    for metric in LATENCIES:
        values = [measured[f"{metric}_{percentile_name(q)}_ms"] for q in PERCENTILE_MIN_SAMPLES]
        known = [value for value in values if value is not None]
        count += sum(later < earlier for earlier, later in pairwise(known))
    return float(count)


def _queueing(record: RunRecord, report: Report) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    if work.arrivals != "closed":
        span = float(np.nanmax(requests.send_s) - np.nanmin(requests.send_s)) if len(requests) else 0.0
        planned = requests.intended_s[~np.isnan(requests.intended_s)]
        # Against the drawn schedule, not the mean rate: forty Poisson arrivals stray by a sixth all by themselves.
        # A driver that does not keep its schedule leaves only the rate.
        by_rate = (len(requests) - 1) / (work.request_rate_per_s or math.inf)
        asked = float(planned.max() - planned.min()) if len(planned) else by_rate
        return {"ev_rate_offered_share": _ratio(asked, span)}
    achieved = concurrency_achieved(requests)
    share = _ratio(achieved, work.concurrency)
    implied = _ratio((work.concurrency or 0) * requests.window_s, good)
    median = float(np.nanmedian(requests.e2el_s)) if good else None
    return {
        "ev_little_over_asked": share,
        "ev_concurrency_share": share,
        "ev_implied_over_median_e2el": _ratio(implied, median),
    }


def _asked_found(record: RunRecord, report: Report) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    found = record.server.engine_version if record.server else None
    conflict = None if found is None else float(release(found) != release(record.asked.engine.version))
    planned = report.planned or Planned(good * work.isl, good * work.osl, cached_tokens=0)
    return {
        "ev_osl_ratio": _ratio(_counted(requests.output_tokens[requests.is_ok]), planned.output_tokens),
        "ev_isl_ratio": _ratio(_counted(requests.input_tokens[requests.is_ok]), planned.input_tokens),
        "ev_engine_version_conflict": conflict,
    }


def _counted(tokens: Ints) -> float | None:
    return None if (tokens < 0).any() else float(tokens.sum())


def release(version: str) -> str:
    """The release part of a version: `0.32.0` of `0.32.0+cpu`."""
    return version.split("+", maxsplit=1)[0]


def _client_server(report: Report, deltas: Mapping[str, float] | None) -> Evidence:
    if not deltas:
        return {}
    requests = report.requests
    good = requests.is_ok
    output = float(requests.output_tokens[requests.output_tokens > 0].sum()) + (report.warmup_output_tokens or 0)
    prompt = float(requests.input_tokens[requests.input_tokens > 0].sum()) + (report.warmup_input_tokens or 0)
    count = int(good.sum()) + (report.warmup_count or 0)
    served = deltas.get("generation_tokens_total")
    finished = _ended(deltas, "stop", "length")
    queried = deltas.get("prefix_cache_queries_total")
    hits = deltas.get("prefix_cache_hits_total")
    return {
        "ev_server_client_tokens_ratio": _ratio(served, output),
        "ev_server_client_prompt_ratio": _ratio(deltas.get("prompt_tokens_total"), prompt),
        "ev_server_client_requests_ratio": _ratio(finished, count),
        "ev_counters_fell": float(sum(delta < 0 for delta in deltas.values())),
        "ev_server_errors": _ended(deltas, "abort", "error"),
        "ev_prefix_hit_share": _unplanned_hits(report, hits, queried),
        "ev_preemptions": deltas.get("num_preemptions_total"),
    }


def _reconciled(record: RunRecord, report: Report, deltas: Mapping[str, float] | None) -> Evidence:
    """How far the server's counts are outside of what the client can account for; 0 where they agree.

    Every answer and token that the client has, the server must have counted. What the server did for a request that
    failed is not known to the client: it may be anything from nothing to all that was asked.
    """
    if not deltas or report.warmup_failed_count is None:
        return {}
    requests, warm_failed = report.requests, report.warmup_failed_count
    failed = ~requests.is_ok
    output, prompt = np.maximum(requests.output_tokens, 0), np.maximum(requests.input_tokens, 0)
    owed = float(
        np.maximum(record.asked.workload.osl - output[failed], 0).sum() + warm_failed * record.asked.workload.osl
    )
    # A prompt whose answer never came has a length that only the context bounds.
    unread = (int((failed & (requests.input_tokens < 0)).sum()) + warm_failed) * record.asked.engine.max_model_len
    answered = int(requests.is_ok.sum()) + (report.warmup_count or 0) - warm_failed
    seen_output = float(output.sum()) + (report.warmup_output_tokens or 0)
    seen_prompt = float(prompt.sum()) + (report.warmup_input_tokens or 0)
    return {
        "ev_server_client_tokens_diff": _beyond(deltas.get("generation_tokens_total"), seen_output, owed),
        "ev_server_client_prompt_diff": _beyond(deltas.get("prompt_tokens_total"), seen_prompt, unread),
        "ev_server_client_requests_diff": _beyond(
            _ended(deltas, "stop", "length"), answered, int(failed.sum()) + warm_failed
        ),
    }


def _beyond(counted: float | None, least: float, slack: float) -> float | None:
    """How far a count is below `least` (negative) or above `least + slack`; 0 inside, None where nobody counted."""
    if counted is None:
        return None
    return min(counted - least, 0.0) or max(counted - least - slack, 0.0)


def _unplanned_hits(report: Report, hits: float | None, queried: float | None) -> float | None:
    """The share of prompt tokens by which the prefix cache's hits differ from those that the prompts were made for."""
    planned = 0.0 if report.planned is None else report.planned.cached_tokens
    if hits is None or planned is None:
        return None
    # With caching off vLLM asks the cache nothing: no question, no hit.
    return abs(hits - planned) / queried if queried else 0.0


def _ended(deltas: Mapping[str, float], *reasons: str) -> float | None:
    if "request_success_total" not in deltas:
        return None
    return sum(deltas.get(f"request_success_total.{reason}", 0.0) for reason in reasons)


def _steady(record: RunRecord, report: Report) -> Evidence:
    steady = report.steady
    delay_ms = None if report.dispatch_delay_p99_s is None else report.dispatch_delay_p99_s * 1e3
    found: Evidence = {"ev_dispatch_delay_p99_ms": delay_ms}
    if steady is None:
        # A client that looks for the window and finds none never had so many requests in flight.
        return found | ({"ev_steady_live_share": 0.0} if report.tells_steady else {})
    line, asked = slope(steady.part_tokens), record.asked.workload.concurrency or 0
    return found | {
        "ev_steady_live_share": _ratio(min(steady.live_mean + HAND_OVER_STREAMS, asked), asked),
        "ev_steady_drift_share": None if line is None else line.beyond_noise,
    }


def _server_view(
    record: RunRecord, report: Report, deltas: Mapping[str, float] | None, scrapes: Scrapes | None
) -> Evidence:
    """The server's gauges and its own times of each request, against the client's; None where it told nothing."""
    apart = disagreement(report.steady, live_view(scrapes, report.steady), blind_live(report.requests, deltas or {}))
    return {
        "ev_scrapes_failed_share": None if scrapes is None else scrapes.failed_share,
        "ev_live_disagreement_share": _ratio(apart, record.asked.workload.concurrency),
        "ev_cached_tokens_diff": _cached_diff(report, deltas),
        **_server_times(report),
    }


def _cached_diff(report: Report, deltas: Mapping[str, float] | None) -> float | None:
    hits = (deltas or {}).get("prefix_cache_hits_total")
    return None if hits is None or report.cached_tokens is None else hits - report.cached_tokens


def _server_times(report: Report) -> Evidence:
    times, requests = report.server_times, report.requests
    if times is None:
        return {}
    over_s = ttft_over_server_s(requests, times)
    over_s = over_s[~np.isnan(over_s)]
    tpot = requests.tpot_s / np.where(times.mean_itl_s > 0, times.mean_itl_s, np.nan)
    tpot = tpot[~np.isnan(tpot)]
    return {
        "ev_ttft_below_server_share": float(np.mean(over_s < 0)) if len(over_s) else None,
        "ev_tpot_over_server": float(np.median(tpot)) if len(tpot) else None,
    }


def _statistics(record: RunRecord, report: Report, measured: Mapping[str, float | int | None]) -> Evidence:
    work, requests = record.asked.workload, report.requests
    good = int(requests.is_ok.sum())
    given = [
        q
        for metric in LATENCIES
        for q, least in PERCENTILE_MIN_SAMPLES.items()
        if measured[f"{metric}_{percentile_name(q)}_ms"] is not None and good < least
    ]
    return {
        "ev_requests_over_required": _ratio(
            len(requests), (work.concurrency or 0) * record.quality.min_requests_per_slot
        ),
        "ev_unsupported_percentiles": float(len(given)),
    }


def _client(record: RunRecord, report: Report) -> Evidence:
    return {
        "ev_client_lag_over_allowed": _client_lag(report),
        "ev_client_core_share": report.core_share,
        "ev_client_merged_late_share": report.merged_late_share,
        "ev_client_calibrated_share": calibrated_share(record, report),
    }


def _client_lag(report: Report) -> float | None:
    if report.kernel_stamp_share == 1.0:
        return 0.0  # every token has the kernel's own time: ours is in no number
    if report.lag_p99_s is None:
        return None
    gaps = report.requests.ok_gap_s
    median = float(np.median(gaps)) if len(gaps) else 0.0
    return report.lag_p99_s / max(LAG_TOLERANCE_S, LAG_TOLERANCE_SHARE * median)
