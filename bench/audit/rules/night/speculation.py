"""Whether numbers of speculative decoding mean anything: real prompts, drafts at all, a length that is possible."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

SPECULATION_RULES: tuple[Rule, ...] = (
    Rule(
        code="speculation_on_random_prompts",
        column=ev.SPEC_ON_RANDOM,
        family="asked-found",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the engine speculates on random prompts: its acceptance and its speed say nothing about real text",
        is_required=False,
        only_where="is_speculative",
        origin="definition: a draft guesses text; on random tokens it measures the tokens",
    ),
    Rule(
        code="speculation_idle",
        column=ev.SPEC_IDLE,
        family="asked-found",
        passing=ZERO,
        tolerated=None,
        sentence="the suite asks for speculative decoding, and the engine made no draft",
        is_required=False,
        only_where="is_speculative",
        origin="definition; n-grams find nothing in text that never repeats, so it only warns",
    ),
    Rule(
        code="acceptance_impossible",
        column=ev.SPEC_LENGTH_OVER_MAX,
        family="arithmetic",
        passing=(None, 1.0),
        tolerated=(None, 1.0),
        sentence="the acceptance length is {value:.2f} times what a draft of the requested tokens allows",
        is_required=False,
        only_where="is_speculative",
        origin="arithmetic: a step yields at most the tokens of its draft and one more",
    ),
)
