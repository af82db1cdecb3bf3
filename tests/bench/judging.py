"""Judge claims as the warehouse does, without a lake."""

from collections.abc import Callable, Sequence

from bench.audit.claim import Claim
from bench.audit.evidence.evidence import Subject
from bench.audit.judge import Judged, group_evidence, judge_claim, row_evidence


def judge_claims(claims: Sequence[Claim], subject_of: Callable[[Claim], Subject]) -> list[Judged]:
    """A verdict for each claim, in their order."""
    together = group_evidence(claims)
    return [
        judge_claim(claim, row_evidence(claim, subject_of(claim)) | more)
        for claim, more in zip(claims, together, strict=True)
    ]
