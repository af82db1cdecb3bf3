"""What an importer noticed itself: one column for each code that it may use."""

from collections import Counter

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import EvidenceByColumn, Observed, Subject

REMARKED = {
    code: f"ev_remarked_{code}"
    for code in (
        "unreadable_value",
        "unit_unknown",
        "failed_not_zero",
        "meaningless_metric",
        "tokens_ambiguous",
        "cost_denominator_unstated",
    )
}


def remarked(claim: Claim, _subject: Subject) -> EvidenceByColumn:
    """How many remarks of each code there are, and what they say; 0 passes."""
    counted = Counter(remark.code for remark in claim.remarks)
    return {
        column: Observed(
            float(counted[code]), "; ".join(remark.message for remark in claim.remarks if remark.code == code)
        )
        for code, column in REMARKED.items()
    }
