"""Whether there are enough requests, and whether the load client kept up."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule
from bench.client_error.limits import CORE_SHARE, MERGED_LATE_SHARE

STATISTICS_RULES: tuple[Rule, ...] = (
    Rule(
        code="too_few_prompts",
        column=ev.REQUESTS_OVER_REQUIRED,
        family="statistics",
        passing=(1.0, None),
        tolerated=(0.2, None),
        sentence="the run has {value:.2f} times the requests a slot that the suite requires",
        loop="closed",
        origin=(
            "InferenceX and MAD send ten requests a slot of concurrency; below two only ramp and drain are measured"
        ),
    ),
    Rule(
        code="tail_unsupported",
        column=ev.UNSUPPORTED_PERCENTILES,
        family="statistics",
        passing=ZERO,
        tolerated=ZERO,
        sentence=("{value:#stated percentile needs|stated percentiles need} more requests than were measured"),
        origin=(
            "a two-sided distribution-free 95 % interval of a percentile q needs ln(0.025) / ln(q) requests:"
            " p90 36, p95 72, p99 368, p99.9 3688"
        ),
    ),
)

CLIENT_RULES: tuple[Rule, ...] = (
    Rule(
        code="client_bound",
        column=ev.CLIENT_LAG_OVER_ALLOWED,
        family="client",
        passing=(0.0, 1.0),
        tolerated=None,
        sentence=(
            "client-bound: the client read {value:.1f} times later than allowed, so its own delay is in the "
            "numbers; add workers, or use a host with more cores"
        ),
        driver="meter",
        origin="docs/adr/0013-the-calibrated-envelope.md: a client counts inside the range of its calibration",
    ),
    Rule(
        code="client_bound_core",
        column=ev.CLIENT_CORE_SHARE,
        family="client",
        passing=(0.0, CORE_SHARE),
        tolerated=None,
        sentence=(
            "client-bound: the client's busiest core was {value:.0%} busy; add workers, or use a host with more cores"
        ),
        driver="meter",
        origin="docs/adr/0013-the-calibrated-envelope.md: a client counts inside the range of its calibration",
    ),
    Rule(
        code="client_bound_merged",
        column=ev.CLIENT_MERGED_LATE_SHARE,
        family="client",
        needs_tokens=True,
        passing=(0.0, MERGED_LATE_SHARE),
        tolerated=None,
        sentence=(
            "client-bound: {value:.1%} of the tokens were read together with a later one because the client "
            "was late, so their times are unknown; add workers, or use a host with more cores"
        ),
        driver="meter",
        origin="docs/adr/0013-the-calibrated-envelope.md: a client counts inside the range of its calibration",
    ),
    Rule(
        code="client_clocks_apart",
        column=ev.CLIENT_CLOCK_ERROR_OVER_ALLOWED,
        family="client",
        passing=(0.0, 1.0),
        tolerated=None,
        sentence=(
            "the clocks of the client hosts are known to within {value:.1f} times what is allowed, so throughput and "
            "arrivals are off by up to that; measure for longer, or use hosts with a shorter way from this computer"
        ),
        driver="meter",
        is_required=False,
        only_where="client_hosts",
        origin="chosen by Nightbench: 0.1 % of the measured window, a tenth of the load that may be missing",
    ),
    Rule(
        code="client_bound_envelope",
        column=ev.CLIENT_CALIBRATED_SHARE,
        family="client",
        passing=(1.0, None),
        tolerated=None,
        sentence=(
            "client-bound: on this host the client was found accurate at up to {value:.0%} of this run's load (0%: at "
            "no load of its kind), so the latencies may include delays of the client; `nightbench calibrate` shows "
            "where it fails: add workers, or use a host with more cores"
        ),
        driver="meter",
        lacking="not calibrated: {not_calibrated}",
        origin="docs/adr/0013-the-calibrated-envelope.md: a client counts inside the range of its calibration",
    ),
)
