"""Whether the samples of a file carry its statistics, and whether the server agrees with its client."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

SERVER_RULES: tuple[Rule, ...] = (
    Rule(
        code="client_server_latency",
        column=ev.TTFT_OVER_SERVER,
        family="client-server",
        passing=(0.98, None),
        tolerated=(0.75, None),
        sentence="the client's mean TTFT is {value:.2f} times the server's own; it cannot be shorter",
        origin=(
            "causality; 2 % for counters, and a warning down to 0.75, since a cold warm-up may be in the server's mean"
        ),
    ),
    Rule(
        code="client_server_latency",
        column=ev.CLIENT_SERVER_TPOT_REL,
        family="client-server",
        passing=(0.0, 0.10),
        tolerated=(0.0, 0.25),
        sentence="the client's and the server's mean TPOT differ by {value:.0%}",
        origin=(
            "chosen by Nightbench: 10 % covers the network and the way each side counts; above 25 % they "
            "measured different requests"
        ),
    ),
)

STATISTICS_RULES: tuple[Rule, ...] = (
    Rule(
        code="tail_unsupported",
        column=ev.THIN_PERCENTILES,
        family="statistics",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#percentile needs|percentiles need} more requests than were measured",
        scope="metric",
        origin=(
            "a two-sided distribution-free 95 % interval of a percentile q needs ln(0.025) / ln(q) requests:"
            " p90 36, p95 72, p99 368, p99.9 3688. Below it the percentile is stored but withheld"
        ),
    ),
    Rule(
        code="bias_guard",
        column=ev.UNGUARDED_INTERVAL,
        family="statistics",
        passing=ZERO,
        tolerated=None,
        sentence="a confidence interval is stated for a run that is too short for one",
        scope="metric",
        origin=(
            "repeats of a run that is too short agree closely and share one error; an interval needs ten "
            "requests a slot and 60 s"
        ),
    ),
    Rule(
        code="quality_below",
        column=ev.QUALITY_OVER_LIMIT,
        family="statistics",
        passing=(1.0, None),
        tolerated=(1.0, None),
        sentence=("the answers reach {value:.3f} times the required quality; below 1 the speed is not published"),
        origin="definition: a speed counts only at the accuracy that its file requires",
    ),
    Rule(
        code="unstable",
        is_noise=True,
        column=ev.HALF_WIDTH_OVER_ALLOWED,
        family="statistics",
        passing=(0.0, 1.0),
        tolerated=None,
        sentence="the interval of the repeats is {value:.1f} times as wide as the suite asks",
        scope="group",
        origin="the suite's own quality.half_width_max: noise makes a mean less sure, and nothing about it wrong",
    ),
    Rule(
        code="unstable",
        column=ev.REPEAT_VARIATION,
        family="statistics",
        passing=(0.0, 0.05),
        tolerated=(0.0, 0.15),
        sentence="throughput varies by {value:.1%} between repeats",
        scope="group",
        origin="chosen by Nightbench: coefficient of variation of the repeats",
    ),
)
