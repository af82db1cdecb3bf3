"""What a file says of itself twice: totals and rates, latencies and their sums, what was asked and what was in flight.

Bounds are those of the project's audit table; where it leaves one open, `origin` says what it is from. The columns of
bench.audit.rules.night are judged by its rules, also for other people's files.
"""

from bench import evidence_columns as ev
from bench.audit.rules.rule import EXACT_ONE, ZERO, Rule

_COMPLETE = "the project's audit table, section 2"
_ARITHMETIC = "the project's audit table, section 3"
_LATENCY = "the project's audit table, section 4"
_SERVER = "the project's audit table, section 5"
_STATISTICS = "the project's audit table, section 8"
_MEDIANS = (
    "medians do not add: in 205 public files they were off by 1.7 % in the middle and 48 % at worst; they warn only"
)

COMPLETENESS_RULES: tuple[Rule, ...] = (
    Rule(
        code="incomplete",
        column=ev.COMPLETED_SHARE,
        family="completeness",
        passing=EXACT_ONE,
        tolerated=(0.95, 1.0),
        sentence="{value:.1%} of the requests that were asked for completed",
        origin=_COMPLETE,
    ),
    Rule(
        code="zero_output",
        column=ev.NOTHING_MEASURED,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence="nothing was measured",
        means_failed=True,
        origin=_COMPLETE,
    ),
    Rule(
        code="cancelled",
        column=ev.CANCELLED,
        family="completeness",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the client says that it was cancelled or killed",
        origin=_COMPLETE,
    ),
    Rule(
        code="impossible_values",
        column=ev.IMPOSSIBLE_VALUES,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#value|values} cannot be",
        origin="a time, a count and a rate are never below zero or infinite, a share never above one",
    ),
)
ARITHMETIC_RULES: tuple[Rule, ...] = (
    Rule(
        code="sum_mismatch",
        column=ev.TOKEN_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the output tokens of the requests differ by {value:+.0f} from their stated total",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="sum_mismatch",
        column=ev.INPUT_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the prompt tokens of the requests differ by {value:+.0f} from their stated total",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="sum_mismatch",
        column=ev.ARRAY_LENGTH_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the arrays differ by {value:+.0f} from the requests that were asked for",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="derived_mismatch",
        column=ev.DERIVED_REL,
        family="arithmetic",
        passing=(0.0, 0.001),
        tolerated=(0.0, 0.001),
        sentence="a rate differs from what it is derived from by {value:.2%} beyond rounding",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="derived_mismatch",
        column=ev.TRIMMED_RATE_REL,
        family="arithmetic",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.05),
        sentence="a rate of a tool that trims or averages differs from the totals by {value:.2%} beyond rounding",
        origin=f"{_ARITHMETIC}: tools with trimmed or per-request rates; by 1 % guidellm's differ by design",
    ),
    Rule(
        code="stat_mismatch",
        column=ev.STAT_REL,
        family="arithmetic",
        passing=(0.0, 0.005),
        tolerated=(0.0, 0.02),
        sentence="a statistic differs from the same one of the requests by {value:.2%}",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="window_mismatch",
        column=ev.WINDOW_REL,
        family="arithmetic",
        passing=(0.0, 0.02),
        tolerated=(0.0, 0.10),
        sentence="first sending to last end differs from the stated duration by {value:.1%}",
        origin=_ARITHMETIC,
    ),
    Rule(
        code="window_mismatch",
        column=ev.LONGEST_OVER_DURATION,
        family="arithmetic",
        passing=(None, 1.01),
        tolerated=(None, 1.01),
        sentence="the longest request took {value:.2f} times the whole window",
        origin="no request is longer than the window that holds it; 1 % for rounding",
    ),
    Rule(
        code="peak_below_mean",
        column=ev.PEAK_OVER_MEAN,
        family="arithmetic",
        passing=(1.0, None),
        tolerated=None,
        sentence="the stated peak is {value:.2f} times the mean: a known defect of clients that count chunks",
        origin=_ARITHMETIC,
    ),
)
LATENCY_RULES: tuple[Rule, ...] = (
    Rule(
        code="tpot_identity",
        column=ev.TPOT_REL,
        family="arithmetic",
        passing=(0.0, 0.02),
        tolerated=(0.0, 0.10),
        sentence="mean TPOT and that of the mean latencies differ by {value:.1%}, though all answers are equally long",
        origin=_LATENCY,
    ),
    Rule(
        code="tpot_identity",
        column=ev.TPOT_LOOSE_REL,
        family="arithmetic",
        passing=(0.0, 0.25),
        tolerated=None,
        sentence="TPOT and that of the other latencies differ by {value:.0%}",
        origin=f"{_LATENCY}; answers of unequal length weigh differently in the two, and {_MEDIANS}",
    ),
    Rule(
        code="tpot_identity",
        column=ev.TPOT_OUTSIDE,
        family="arithmetic",
        passing=(0.0, 0.001),
        tolerated=(0.0, 0.001),
        sentence="TPOT by the mean latencies lies {value:.1%} outside of the least and the largest that are stated",
        origin=_LATENCY,
    ),
    Rule(
        code="unit_suspect",
        column=ev.UNIT_FACTOR,
        family="units",
        passing=EXACT_ONE,
        tolerated=EXACT_ONE,
        sentence="a latency has another unit than its name says, by a factor of {value:g}",
        origin=_LATENCY,
    ),
    Rule(
        code="chunk_token_ratio",
        column=ev.CHUNK_TOKEN_RATIO_IMPLIED,
        family="arithmetic",
        passing=(0.9, 1.1),
        tolerated=(0.67, 1.5),
        sentence="the time a token is {value:.2f} times the mean gap of the stream: its events are not tokens",
        scope="metric",
        withdraws=("itl",),
        origin=_LATENCY,
    ),
    Rule(
        code="chunked_stream",
        column=ev.TOKENS_PER_CHUNK,
        family="arithmetic",
        passing=(None, 1.5),
        tolerated=(None, 1.5),
        sentence="{value:.2f} tokens share an event of the stream: the times between tokens are not known",
        scope="metric",
        withdraws=("itl",),
        origin=_LATENCY,
    ),
    Rule(
        code="bursty_stream",
        column=ev.BURST_SHARE,
        family="arithmetic",
        passing=(0.0, 0.2),
        tolerated=None,
        sentence=(
            "{value:.0%} of the gaps are under 0.1 ms: a buffer between engine and client, or a client that stalls"
        ),
        scope="metric",
        withdraws=("itl",),
        origin=_LATENCY,
    ),
    Rule(
        code="usage_mismatch",
        column=ev.USAGE_REL,
        family="client-server",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.10),
        sentence="the server's usage and the client's tokenizer differ by {value:.1%}",
        origin=f"{_LATENCY}, after aiperf",
    ),
)
QUEUEING_RULES: tuple[Rule, ...] = (
    Rule(
        code="little_excess",
        column=ev.LITTLE_LOOSE_OVER_ASKED,
        family="queueing",
        passing=(None, 1.10),
        tolerated=None,
        sentence="by medians {value:.2f} times the asked concurrency was in flight",
        origin=f"{_LATENCY}: at most a warning; 1.10 was the most in 205 public files",
    ),
    Rule(
        code="concurrency_not_reached",
        column=ev.CONCURRENCY_LOOSE_SHARE,
        family="queueing",
        passing=(0.7, None),
        tolerated=None,
        sentence="by medians only {value:.0%} of the asked concurrency was in flight",
        origin=f"{_LATENCY}; {_MEDIANS}",
    ),
    Rule(
        code="cold_start_contamination",
        column=ev.IMPLIED_OVER_MEDIAN_SUM,
        family="queueing",
        passing=(None, 1.5),
        tolerated=None,
        sentence="concurrency over request throughput is {value:.2f} times the median TTFT and TPOT together",
        origin=f"{_LATENCY}; {_MEDIANS}",
    ),
    Rule(
        code="cold_start_contamination",
        column=ev.FIRST_ITERATION_OVER_REST,
        family="queueing",
        passing=(None, 1.10),
        tolerated=(None, 1.5),
        sentence="the first iteration took {value:.2f} times as long as the others: it was cold",
        origin=_LATENCY,
    ),
    Rule(
        code="rate_not_offered",
        column=ev.RATE_SENT_SHARE,
        family="queueing",
        passing=(0.95, None),
        tolerated=(0.8, None),
        sentence="only {value:.0%} of the asked request rate was sent",
        origin=_LATENCY,
    ),
    Rule(
        code="over_saturated",
        column=ev.RISE_SHARE,
        family="queueing",
        passing=(None, 0.5),
        tolerated=None,
        sentence=(
            "requests piled up through the window, by {value:.0%} at least: the latencies depend on how long it was"
        ),
        origin=f"{_LATENCY}; half of the mean and not zero, since queues wander by themselves",
    ),
    Rule(
        code="client_bound",
        column=ev.SEND_DELAY_OVER_TTFT,
        family="client",
        passing=(0.0, 0.05),
        tolerated=None,
        sentence="client-bound: one request in a hundred was sent late by {value:.0%} of the mean TTFT",
        origin=_LATENCY,
    ),
)
SERVER_RULES: tuple[Rule, ...] = (
    Rule(
        code="client_server_latency",
        column=ev.TTFT_OVER_SERVER,
        family="client-server",
        passing=(0.98, None),
        tolerated=(0.75, None),
        sentence="the client's mean TTFT is {value:.2f} times the server's own: sooner than it was made",
        origin=f"{_SERVER}; 2 % as for counters, and a warning where a cold warm-up may be in the server's mean",
    ),
    Rule(
        code="client_server_latency",
        column=ev.CLIENT_SERVER_TPOT_REL,
        family="client-server",
        passing=(0.0, 0.10),
        tolerated=(0.0, 0.25),
        sentence="the client's and the server's mean TPOT differ by {value:.0%}",
        origin=_SERVER,
    ),
)
STATISTICS_RULES: tuple[Rule, ...] = (
    Rule(
        code="tail_unsupported",
        column=ev.THIN_PERCENTILES,
        family="statistics",
        passing=ZERO,
        tolerated=None,
        sentence=(
            "{value:#percentile is stated of fewer requests than it needs|"
            "percentiles are stated of fewer requests than they need}"
        ),
        scope="metric",
        origin=f"{_STATISTICS}: below it a percentile is kept and withheld, which says nothing of the measurement",
    ),
    Rule(
        code="bias_guard",
        column=ev.UNGUARDED_INTERVAL,
        family="statistics",
        passing=ZERO,
        tolerated=None,
        sentence="an interval is stated that chance alone does not explain",
        scope="metric",
        origin=f"{_STATISTICS}: repeats of a run that is too short agree closely and are wrong together",
    ),
    Rule(
        code="quality_below",
        column=ev.QUALITY_OVER_LIMIT,
        family="statistics",
        passing=(1.0, None),
        tolerated=(1.0, None),
        sentence="the answers have {value:.3f} times the quality that a speed needs to be published",
        origin=_STATISTICS,
    ),
    Rule(
        code="unstable",
        column=ev.REPEAT_VARIATION,
        family="statistics",
        passing=(0.0, 0.05),
        tolerated=(0.0, 0.15),
        sentence="throughput varies by {value:.1%} from repeat to repeat",
        scope="group",
        origin=_STATISTICS,
    ),
)
IDENTITY_RULES: tuple[Rule, ...] = (
    *COMPLETENESS_RULES,
    *ARITHMETIC_RULES,
    *LATENCY_RULES,
    *QUEUEING_RULES,
    *SERVER_RULES,
    *STATISTICS_RULES,
)
