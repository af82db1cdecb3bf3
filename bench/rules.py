"""What every measurement is judged by: each rule a column of evidence and its two bounds, declared as data.

Inside `passing` it passes, inside `tolerated` it is a warning, outside it fails. warehouse/expectations.py has
great-expectations judge by the same rules. Bounds are those of the project's audit table, after InferenceX, MAD, aiperf
and LoadGen practice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bench.calibration import CORE_SHARE, MERGED_LATE_SHARE

Verdict = Literal["accepted", "suspect", "rejected", "failed", "not-run"]
Status = Literal["PASS", "WARN", "FAIL", "NOT-CHECKABLE"]
Evidence = dict[str, float | None]
# (lowest, highest), None for no bound.
Range = tuple[float | None, float | None]


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
DISPATCH_MS = 1.0  # it warns and no more: every time is counted from the real sending
DRIFT_SHARE = 0.10  # twice what a quiet host's runs differ by among each other
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
