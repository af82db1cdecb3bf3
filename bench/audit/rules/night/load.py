"""Whether the planned load was in flight, steady and on time."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

DRIFT_SHARE = 0.10  # twice the difference between runs on a quiet host

LOAD_RULES: tuple[Rule, ...] = (
    Rule(
        code="little_excess",
        column=ev.LITTLE_OVER_ASKED,
        family="queueing",
        passing=(None, 1.02),
        tolerated=(None, 1.10),
        sentence="{value:.2f} times the requested concurrency was in flight; more than 1 is impossible",
        loop="closed",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight, and a closed "
            "loop never exceeds its concurrency; 2 % for rounding, 10 % for a window that is cut differently"
        ),
    ),
    Rule(
        code="concurrency_not_reached",
        only_doubts_on_a_busy_host=True,
        column=ev.CONCURRENCY_SHARE,
        family="queueing",
        passing=(0.85, None),
        tolerated=(0.5, None),
        sentence="only {value:.0%} of the requested concurrency was in flight",
        loop="closed",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight. With ten "
            "requests a slot the drain at the end costs up to 15 %"
        ),
    ),
    Rule(
        code="concurrency_over_slots",
        column=ev.CONCURRENCY_OVER_SLOTS,
        family="queueing",
        passing=(None, 1.0),
        tolerated=None,
        sentence=(
            "the load has {value:.2f} times as many requests in flight as the engine computes at the same time by its"
            " flags: the others wait in its queue"
        ),
        loop="closed",
        is_required=False,
        origin=(
            "definition: --max-num-seqs of vLLM (of each replica), --max-running-requests of SGLang, --parallel of"
            " llama.cpp, which is 1 where it is left out"
        ),
    ),
    Rule(
        code="cold_start_contamination",
        only_doubts_on_a_busy_host=True,
        column=ev.IMPLIED_OVER_MEDIAN_E2EL,
        family="queueing",
        passing=(None, 1.2),
        tolerated=(None, 2.0),
        sentence=(
            "concurrency over request throughput is {value:.2f} times the median latency; a high ratio means"
            " a cold start"
        ),
        loop="closed",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight. A median far "
            "below that mean has very slow requests beside it"
        ),
    ),
    Rule(
        code="live_not_held",
        only_doubts_on_a_busy_host=True,
        column=ev.STEADY_LIVE_SHARE,
        family="queueing",
        passing=(0.99, None),
        tolerated=(0.95, None),
        sentence="only {value:.1%} of the requested concurrency was in flight in the steady window",
        loop="closed",
        driver="meter",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight; inside the "
            "steady window a closed loop has no ramp and no drain"
        ),
    ),
    Rule(
        code="steady_drift",
        column=ev.STEADY_DRIFT_SHARE,
        family="queueing",
        passing=(0.0, DRIFT_SHARE),
        tolerated=None,
        sentence="throughput changed by at least {value:.0%} from start to end of the steady window",
        loop="closed",
        driver="meter",
        is_required=False,
        origin=(
            "chosen by Nightbench: twice the difference between runs on quiet hosts; METHOD.md, version 2, defines the"
            " window and the slope"
        ),
    ),
    Rule(
        code="dispatch_late",
        is_noise=True,
        column=ev.DISPATCH_DELAY_OVER_ALLOWED,
        family="queueing",
        passing=(None, 1.0),
        tolerated=None,
        sentence="1 % of the requests were sent {value:.1f} times as late as allowed, or later",
        loop="open",
        driver="meter",
        note="{dispatch_delay_p99_ms:.1f} ms after they were due; {host_pressure}",
        origin=(
            "chosen by Nightbench: 1 ms is twice the difference between runs on quiet hosts; where requests are more"
            " than 100 ms apart, 1 % of that time leaves the arrivals what they are. It only warns: latencies count"
            " from the actual send"
        ),
    ),
    Rule(
        code="rate_not_offered",
        only_doubts_on_a_busy_host=True,
        column=ev.RATE_OFFERED_SHARE,
        family="queueing",
        passing=(0.99, None),
        tolerated=(0.8, None),
        sentence="only {value:.0%} of the planned request rate was sent",
        loop="open",
        origin=("chosen by Nightbench: the load is not the planned one below 99 %, and another load below 80 %"),
    ),
)
