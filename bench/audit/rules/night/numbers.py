"""Whether a run of our own is whole, and its numbers follow from each other."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import EXACT_ONE, ZERO, Rule

NUMBER_RULES: tuple[Rule, ...] = (
    Rule(
        code="failure_rate",
        column=ev.FAILURE_SHARE,
        family="completeness",
        is_of_batches=True,
        passing=ZERO,
        tolerated=(0.0, 0.05),
        sentence="{value:.1%} of the requests failed",
        origin="InferenceX tolerates 5 % failed requests, perf-eval tolerates none",
    ),
    Rule(
        code="incomplete",
        column=ev.ANSWERED_SHARE,
        family="completeness",
        is_of_batches=True,
        passing=EXACT_ONE,
        tolerated=(0.95, 1.0),
        sentence="{value:.1%} of the planned requests completed or failed",
        origin="InferenceX tolerates 5 % failed requests, perf-eval tolerates none",
    ),
    Rule(
        code="duration_short",
        column=ev.DURATION_OVER_REQUIRED,
        family="completeness",
        is_of_batches=True,
        passing=(1.0, None),
        tolerated=(1 / 60, None),
        sentence="the measured window is {value:.2f} times the suite's minimum duration",
        origin=(
            "the suite's quality.min_duration_s, 60 s unless set; a sixtieth of that is too short for any "
            "rate. MLPerf LoadGen requires 600 s"
        ),
    ),
    Rule(
        code="derived_mismatch",
        column=ev.THROUGHPUT_REL,
        family="arithmetic",
        needs_tokens=True,
        is_of_batches=True,
        passing=(0.0, 0.001),
        tolerated=(0.0, 0.001),
        sentence="output tokens over duration differ by {value:.2%} from the stated throughput",
        origin=(
            "arithmetic: rate times duration is the total; rounding explains 0.1 %, and 205 public result "
            "files of `vllm bench` were exact"
        ),
    ),
    Rule(
        code="e2el_identity",
        column=ev.E2EL_BROKEN_SHARE,
        family="arithmetic",
        needs_tokens=True,
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.05),
        sentence="in {value:.1%} of the requests TTFT plus all gaps is not the end-to-end latency",
        scope="metric",
        withdraws=("ttft", "tpot", "itl", "e2el"),
        origin=(
            "identity E2EL = TTFT + sum of the gaps, within 1 ms or 1 %; exact in 205 public result files of"
            " `vllm bench`"
        ),
    ),
    Rule(
        code="percentile_order",
        column=ev.PERCENTILE_DISORDER,
        family="arithmetic",
        is_of_batches=True,
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#statistic is|statistics are} out of order",
        origin=(
            "arithmetic: minimum <= p50 <= p90 <= p99 <= maximum, and the mean between minimum and maximum; "
            "holds in all of 205 public result files of `vllm bench`"
        ),
    ),
)
