"""The numbers a claim is judged by, one file for each sort of doubt."""

from bench.evidence.exhibit import GroupEvidence, RowEvidence
from bench.evidence.remarks import remarked

ROW_EVIDENCE: tuple[RowEvidence, ...] = (remarked,)
GROUP_EVIDENCE: tuple[GroupEvidence, ...] = ()
