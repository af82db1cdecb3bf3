"""Whether the load of a file was the requested one."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

QUEUEING_RULES: tuple[Rule, ...] = (
    Rule(
        code="little_excess",
        column=ev.LITTLE_LOOSE_OVER_ASKED,
        family="queueing",
        passing=(None, 1.10),
        tolerated=None,
        sentence="medians imply {value:.2f} times the requested concurrency in flight",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight. With medians "
            "it is approximate and only warns; 1.10 was the maximum in 205 public result files of `vllm "
            "bench`"
        ),
    ),
    Rule(
        code="concurrency_not_reached",
        only_doubts_on_a_busy_host=True,
        column=ev.CONCURRENCY_LOOSE_SHARE,
        family="queueing",
        passing=(0.7, None),
        tolerated=None,
        sentence="medians imply that only {value:.0%} of the requested concurrency was in flight",
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight. With medians "
            "it is approximate and only warns; 15 of 169 public closed-loop files are below 0.7"
        ),
    ),
    Rule(
        code="cold_start_contamination",
        only_doubts_on_a_busy_host=True,
        column=ev.IMPLIED_OVER_MEDIAN_SUM,
        family="queueing",
        passing=(None, 1.5),
        tolerated=None,
        sentence=(
            "concurrency over request throughput is {value:.2f} times the median TTFT plus TPOT; a high "
            "ratio means a cold start"
        ),
        origin=(
            "Little's law: request throughput times mean latency is the mean number in flight. With medians "
            "it is approximate and only warns"
        ),
    ),
    Rule(
        code="cold_start_contamination",
        only_doubts_on_a_busy_host=True,
        column=ev.FIRST_ITERATION_OVER_REST,
        family="queueing",
        passing=(None, 1.10),
        tolerated=(None, 1.5),
        sentence=("the first iteration took {value:.2f} times as long as the others; a high ratio means a cold start"),
        origin=(
            "chosen by Nightbench: a tenth covers noise; from half as long again the first iteration moves "
            "the mean of ten by 5 %"
        ),
    ),
    Rule(
        code="too_few_prompts",
        column=ev.REQUESTS_ONE_AT_A_TIME,
        family="statistics",
        passing=(10.0, None),
        tolerated=None,
        sentence="{value:#request was|requests were} sent one at a time, which is a small sample",
        origin=(
            "InferenceX and MAD send ten requests a slot of concurrency; one slot has neither ramp nor drain, so fewer"
            " requests are a small sample and only warn"
        ),
    ),
    Rule(
        code="rate_not_offered",
        column=ev.RATE_SENT_SHARE,
        family="queueing",
        passing=(0.95, None),
        tolerated=(0.8, None),
        sentence="only {value:.0%} of the requested request rate was sent",
        origin=("chosen by Nightbench: the load is not the requested one below 95 %, and another load below 80 %"),
    ),
    Rule(
        code="over_saturated",
        column=ev.RISE_SHARE,
        family="queueing",
        passing=(None, 0.5),
        tolerated=None,
        sentence=(
            "requests accumulated during the window, by at least {value:.0%}: the latencies depend on its length"
        ),
        origin=(
            "chosen by Nightbench: the lower end of the 99.9 % interval of a line through TTFT or the requests"
            " in flight, as a share of the mean; wider where neighbouring parts of the window resemble each other."
            " Queues fluctuate by themselves, so half of the mean still passes"
        ),
    ),
    Rule(
        code="client_bound",
        column=ev.SEND_DELAY_OVER_TTFT,
        family="client",
        passing=(0.0, 0.05),
        tolerated=None,
        sentence="client-bound: the p99 send delay is {value:.0%} of the mean TTFT",
        origin=("chosen by Nightbench: a client that sends 5 % of a TTFT late adds its own delay to what it measures"),
    ),
)
