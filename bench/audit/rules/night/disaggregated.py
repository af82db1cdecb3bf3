"""Whether prefill and decode on servers of their own really are on servers of their own."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import Rule

DISAGGREGATED_RULES: tuple[Rule, ...] = (
    Rule(
        code="prefill_bypassed",
        column=ev.PREFILL_PASSED_SHARE,
        family="asked-found",
        passing=(1.0, None),
        tolerated=(0.99, None),
        sentence="the prefill server read {value:.1%} of the prompt tokens that the decode server read",
        is_required=False,
        only_where="kv_connector",
        origin="definition; both servers count the tokens of each prompt, and the prefill server does so first",
    ),
    Rule(
        code="kv_computed_again",
        column=ev.KV_COMPUTED_AGAIN_SHARE,
        family="asked-found",
        passing=(0.0, 0.01),
        tolerated=(0.0, 0.1),
        sentence="the decode server computed {value:.1%} of the prompt tokens again, whose keys and values the prefill "
        "server had",
        is_required=False,
        only_where="kv_connector",
        origin="definition; whole blocks are handed over, and never the last token of a prompt",
    ),
)
