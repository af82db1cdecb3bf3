"""Whether the totals, rates and statistics of a file follow from each other."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

ARITHMETIC_RULES: tuple[Rule, ...] = (
    Rule(
        code="sum_mismatch",
        column=ev.TOKEN_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the output tokens of the requests differ by {value:+.0f} from the stated total",
        origin="arithmetic: integers of one run add up exactly",
    ),
    Rule(
        code="sum_mismatch",
        column=ev.INPUT_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the prompt tokens of the requests differ by {value:+.0f} from the stated total",
        origin="arithmetic: integers of one run add up exactly",
    ),
    Rule(
        code="sum_mismatch",
        column=ev.TOTAL_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the total of all tokens differs by {value:+.0f} from prompts and answers together",
        origin="arithmetic: integers of one run add up exactly",
    ),
    Rule(
        code="sum_mismatch",
        column=ev.SLICE_SUM_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the time slices differ by {value:+.0f} from the run that they are of",
        origin="arithmetic: each request lies in one slice, by its start",
    ),
    Rule(
        code="sum_mismatch",
        column=ev.ARRAY_LENGTH_DIFF,
        family="arithmetic",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the number of entries differs by {value:+.0f} from the number of requests",
        origin="arithmetic: integers of one run add up exactly",
    ),
    Rule(
        code="osl_not_reached",
        column=ev.OSL_MISMATCH_SHARE,
        family="asked-found",
        passing=(0.0, 0.01),
        tolerated=None,
        sentence="{value:.1%} of the answers have another length than requested",
        origin="chosen by Nightbench: 1 % of the answers; aiperf counts those that are over 5 % off",
    ),
    Rule(
        code="osl_not_reached",
        column=ev.TOTAL_LENGTH_RATIO,
        family="asked-found",
        passing=(0.99, 1.01),
        tolerated=(0.9, 1.1),
        sentence="prompts and answers together have {value:.3f} times the requested length",
        origin=(
            "with ignore_eos a server generates exactly the requested tokens; 1 % for special tokens and retokenization"
        ),
    ),
    Rule(
        code="derived_mismatch",
        column=ev.DERIVED_REL,
        family="arithmetic",
        passing=(0.0, 0.001),
        tolerated=(0.0, 0.001),
        sentence="a rate or mean differs from its totals by {value:.2%} beyond rounding",
        origin=(
            "arithmetic: rate times duration is the total; rounding explains 0.1 %, and 205 public result "
            "files of `vllm bench` were exact"
        ),
    ),
    Rule(
        code="derived_mismatch",
        column=ev.TRIMMED_RATE_REL,
        family="arithmetic",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.05),
        sentence="a mean, or a trimmed or averaged rate, differs from the totals by {value:.2%} beyond rounding",
        origin=(
            "chosen by Nightbench: tools that trim outliers or average the rates of requests differ by "
            "design, guidellm by about 1 %"
        ),
    ),
    Rule(
        code="stat_mismatch",
        column=ev.STAT_REL,
        family="arithmetic",
        passing=(0.0, 0.005),
        tolerated=(0.0, 0.02),
        sentence="a stated statistic differs by {value:.2%} from the same statistic of the requests",
        origin=(
            "arithmetic; 0.5 % covers the estimators in use (population or sample deviation, percentile interpolation)"
        ),
    ),
    Rule(
        code="window_mismatch",
        column=ev.WINDOW_REL,
        family="arithmetic",
        passing=(0.0, 0.02),
        tolerated=(0.0, 0.10),
        sentence=("the time from the first send to the last end differs from the stated duration by {value:.1%}"),
        origin=(
            "arithmetic; Nightbench chose 2 % for clocks and start-up, and 10 % as the most that start-up explains"
        ),
    ),
    Rule(
        code="window_mismatch",
        column=ev.LONGEST_OVER_DURATION,
        family="arithmetic",
        passing=(None, 1.01),
        tolerated=(None, 1.01),
        sentence="the longest request took {value:.2f} times the whole window",
        origin=(
            "arithmetic: no request outlasts its window; 1 % for rounding. In 205 public result files of "
            "`vllm bench` the ratio was 0.75 to 0.999"
        ),
    ),
    Rule(
        code="peak_below_mean",
        column=ev.PEAK_OVER_MEAN,
        family="arithmetic",
        passing=(1.0, None),
        tolerated=None,
        sentence=(
            "the stated peak token rate is {value:.2f} times the mean; below 1 the client counted chunks as tokens"
        ),
        origin="arithmetic; only a warning, since some clients have this known defect",
    ),
)
