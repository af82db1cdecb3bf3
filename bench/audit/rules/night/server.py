"""Whether the server's own counters agree with the client."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Range, Rule

SERVER_PASSING: Range = (0.98, 1.02)
SERVER_TOLERATED: Range = (0.95, 1.15)

SERVER_RULES: tuple[Rule, ...] = (
    Rule(
        code="client_server_mismatch",
        column=ev.SERVER_CLIENT_TOKENS_RATIO,
        family="client-server",
        needs_tokens=True,
        passing=SERVER_PASSING,
        tolerated=SERVER_TOLERATED,
        sentence="the server counted {value:.3f} times the client's output tokens",
        origin="the bands of aiperf's reconciliation of client and server counters (0.95, 1.02, 1.15)",
    ),
    Rule(
        code="client_server_mismatch_prompt",
        column=ev.SERVER_CLIENT_PROMPT_RATIO,
        family="client-server",
        passing=SERVER_PASSING,
        tolerated=SERVER_TOLERATED,
        sentence="the server counted {value:.3f} times the client's prompt tokens",
        origin="the bands of aiperf's reconciliation of client and server counters (0.95, 1.02, 1.15)",
    ),
    Rule(
        code="client_server_mismatch_requests",
        column=ev.SERVER_CLIENT_REQUESTS_RATIO,
        family="client-server",
        passing=SERVER_PASSING,
        tolerated=SERVER_TOLERATED,
        sentence="the server finished {value:.3f} times the client's requests",
        origin="the bands of aiperf's reconciliation of client and server counters (0.95, 1.02, 1.15)",
    ),
    Rule(
        code="token_count_drift",
        column=ev.SERVER_CLIENT_TOKENS_DIFF,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the server counted {value:+.0f} output tokens that the client cannot account for",
        driver="meter",
        origin="counters are integers: a difference is the work of another client",
    ),
    Rule(
        code="prompt_count_drift",
        column=ev.SERVER_CLIENT_PROMPT_DIFF,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the server counted {value:+.0f} prompt tokens that the client cannot account for",
        driver="meter",
        origin="counters are integers: a difference is the work of another client",
    ),
    Rule(
        code="request_count_drift",
        column=ev.SERVER_CLIENT_REQUESTS_DIFF,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the server finished {value:+.0f} requests that the client cannot account for",
        driver="meter",
        origin="counters are integers: a difference is the work of another client",
    ),
    Rule(
        code="live_disagreement",
        only_doubts_on_a_busy_host=True,
        column=ev.LIVE_DISAGREEMENT_SHARE,
        family="client-server",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.05),
        sentence="client and server differ in the requests in flight by {value:.1%} of the concurrency",
        loop="closed",
        driver="meter",
        is_required=False,
        origin=("chosen by Nightbench; METHOD.md, version 2, defines both counts and the difference that is explained"),
    ),
    Rule(
        code="server_unwatched",
        column=ev.SCRAPES_FAILED_SHARE,
        family="client-server",
        passing=(0.0, 0.05),
        tolerated=None,
        sentence="{value:.0%} of the reads of the server's counters failed during the load",
        is_required=False,
        origin=("chosen by Nightbench: twice the difference between runs on quiet hosts"),
    ),
    Rule(
        code="ttft_below_server",
        column=ev.TTFT_BELOW_SERVER_SHARE,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="in {value:.1%} of the requests the client's TTFT is shorter than the server's own",
        driver="meter",
        is_required=False,
        origin="causality: a client cannot receive a token before the server makes it",
    ),
    Rule(
        code="tpot_disagreement",
        column=ev.TPOT_OVER_SERVER,
        family="client-server",
        passing=(0.9, 1.1),
        tolerated=(0.75, 1.25),
        sentence="mean time per token is {value:.2f} times the server's own",
        driver="meter",
        is_required=False,
        scope="metric",
        withdraws=(
            "ttft",
            "tpot",
            "itl",
        ),  # the stream's times are not the server's; E2EL and throughput do not need them
        origin=(
            "chosen by Nightbench: 10 % covers the network and the way each side counts; above 25 % they "
            "measured different requests"
        ),
    ),
    Rule(
        code="cached_tokens_drift",
        column=ev.CACHED_TOKENS_DIFF,
        family="client-server",
        passing=ZERO,
        tolerated=None,
        sentence="the server's prefix cache counted {value:+.0f} hits that its answers do not report",
        driver="meter",
        is_required=False,
        origin="counters are integers: a difference is the work of another client",
    ),
    Rule(
        code="server_restarted",
        column=ev.COUNTERS_FELL,
        family="client-server",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#counter|counters} of the server decreased: the server restarted during the run",
        origin="Prometheus counters only grow until their process restarts",
    ),
    Rule(
        code="server_errors",
        column=ev.SERVER_ERRORS,
        family="client-server",
        passing=ZERO,
        tolerated=None,
        sentence="the server aborted {value:#request|requests}",
        origin="definition: the server ended requests that the client did not cancel",
    ),
    Rule(
        code="prefix_cache_contamination",
        column=ev.PREFIX_HIT_SHARE,
        family="client-server",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.10),
        sentence="hits of the prefix cache differ from the planned ones by {value:.1%} of the prompt tokens",
        note=(
            "{server_prefix_cache_hits} of {server_prefix_cache_queries} tokens hit, "
            "{planned_prefix_cache_hits} were planned"
        ),
        needs_exact_prompts=True,
        origin=(
            "chosen by Nightbench: random prompts share no prefix; 1 % is chance, and from 10 % the prefill "
            "is mostly another one"
        ),
    ),
    Rule(
        code="preempted",
        column=ev.PREEMPTIONS,
        family="client-server",
        passing=ZERO,
        tolerated=None,
        sentence="the server preempted {value:#request|requests}",
        origin="vLLM preempts a request where the KV cache is full, and computes it again",
    ),
)
