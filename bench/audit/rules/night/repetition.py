"""Whether a server computes the answer to a prompt that it has answered before."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

REPETITION_RULES: tuple[Rule, ...] = (
    Rule(
        code="cached_outputs",
        column=ev.REPEATED_GENERATION_SHARE,
        family="client-server",
        passing=(0.9, None),
        tolerated=(0.67, None),
        sentence="the answer to a repeated prompt takes {value:.2f} times the time of that to a distinct one: answers "
        "come out of a cache",
        is_required=False,
        only_where="repeated_e2el_p50_ms",
        origin="MLPerf Inference, compliance test TEST04: a repeated sample must not be faster by more than 10 %; "
        "chosen by Nightbench: a third faster is beyond noise",
    ),
    Rule(
        code="cached_prompts",
        column=ev.REPEATED_TTFT_SHARE,
        family="client-server",
        passing=(0.8, None),
        tolerated=None,
        sentence="a repeated prompt waits {value:.2f} times as long for its first token as a distinct one: prompts "
        "come out of a cache",
        is_required=False,
        only_where="repeated_e2el_p50_ms",
        origin="chosen by Nightbench: a prefix cache saves most of a prefill; 20 % is noise of a median",
    ),
)
