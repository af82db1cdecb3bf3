"""The evidence of speculative decoding: on which prompts, whether at all, and whether its acceptance is possible."""

from collections.abc import Mapping

from bench import evidence_columns as ev
from bench.audit.rules import Evidence
from bench.engines.acceptance import Acceptance, acceptance_of
from bench.engines.speculation import Speculation, speculation_of
from bench.metrics import ratio
from bench.record import RunRecord

RANDOM = frozenset({"random", "shared-prefix", "multi-turn"})


def speculation_evidence(record: RunRecord, deltas: Mapping[str, float] | None) -> Evidence:
    """Empty where neither flags nor counters show that the engine speculates."""
    requested, found = speculation_of(record.asked.engine.flags), acceptance_of(deltas)
    if requested is None and (found is None or not found.drafts):
        return {}
    work = record.asked.workload
    is_random = work.prompts.kind in RANDOM and not work.random_speculation
    return {ev.SPEC_ON_RANDOM: float(is_random), **_of_counters(requested, found)}


def _of_counters(requested: Speculation | None, found: Acceptance | None) -> Evidence:
    if found is None:
        return {}
    most = None if requested is None or requested.tokens_max is None else requested.tokens_max + 1.0
    idle = None if requested is None else float(not found.drafts)
    return {ev.SPEC_IDLE: idle, ev.SPEC_LENGTH_OVER_MAX: ratio(found.length, most)}
