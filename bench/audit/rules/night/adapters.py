"""Whether each adapter of a load is really there."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

ADAPTER_RULES: tuple[Rule, ...] = (
    Rule(
        code="adapter_missing",
        column=ev.ADAPTERS_LIKE_BASE,
        family="asked-found",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#adapter answers|adapters answer} fixed prompts exactly as the base model does: missing, or "
        "without effect",
        driver="meter",
        is_required=False,
        only_where="adapters",
        origin="definition: an adapter changes the weights, and greedy answers to several prompts with them",
    ),
)
