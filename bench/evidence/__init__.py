"""The numbers a claim is judged by, one file for each sort of doubt."""

from bench.evidence.exhibit import GroupEvidence, RowEvidence
from bench.evidence.memory import memory_needs
from bench.evidence.remarks import remarked
from bench.evidence.roofline import roofline_shares
from bench.evidence.training import training_shares

ROW_EVIDENCE: tuple[RowEvidence, ...] = (remarked, roofline_shares, training_shares, memory_needs)
GROUP_EVIDENCE: tuple[GroupEvidence, ...] = ()
