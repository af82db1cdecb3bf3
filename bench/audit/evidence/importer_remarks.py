"""Remarks of importers: one column for each code that they may use."""

from collections import Counter

from bench import evidence_columns as ev
from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, Observed, Subject

REMARKED = {
    "unreadable_value": ev.REMARKED_UNREADABLE_VALUE,
    "unit_unknown": ev.REMARKED_UNIT_UNKNOWN,
    "failed_not_zero": ev.REMARKED_FAILED_NOT_ZERO,
    "meaningless_metric": ev.REMARKED_MEANINGLESS_METRIC,
    "metric_ambiguous": ev.REMARKED_METRIC_AMBIGUOUS,
    "fact_conflict": ev.REMARKED_FACT_CONFLICT,
    "table_arithmetic": ev.REMARKED_TABLE_ARITHMETIC,
    "tokens_ambiguous": ev.REMARKED_TOKENS_AMBIGUOUS,
    "cost_denominator_unstated": ev.REMARKED_COST_DENOMINATOR_UNSTATED,
}


def remarked(claim: Claim, _subject: Subject) -> EvidenceByColumn:
    """The number of remarks of each code, with their messages; 0 passes."""
    counted = Counter(remark.code for remark in claim.remarks)
    return {
        column: Observed(
            float(counted[code]), "; ".join(remark.message for remark in claim.remarks if remark.code == code)
        )
        for code, column in REMARKED.items()
    }


def budgeted(claim: Claim, _subject: Subject) -> EvidenceByColumn:
    """How many numbers of a memory budget do not fit, and how many fit in another unit than is printed."""
    if not claim.budget:
        return {}
    wrong = [line.arithmetic for line in claim.budget if line.is_wrong]
    other = [line.arithmetic for line in claim.budget if line.is_other_unit]
    right = [line.arithmetic for line in claim.budget]
    return {
        ev.MEMORY_BUDGET_WRONG: Observed(float(len(wrong)), "; ".join(wrong or right)),
        ev.MEMORY_BUDGET_UNIT: Observed(float(len(other)), "; ".join(other)),
    }
