"""The numbers a claim is judged by, one file for each sort of doubt."""

from bench.evidence.copies import copied_numbers
from bench.evidence.energy import energy_identities
from bench.evidence.exhibit import GroupEvidence, RowEvidence
from bench.evidence.identities import identities
from bench.evidence.memory import memory_needs
from bench.evidence.money import cost_identity, token_units
from bench.evidence.provenance import provenance_conflicts
from bench.evidence.remarks import remarked
from bench.evidence.roofline import roofline_shares
from bench.evidence.scaling import scaling_gains
from bench.evidence.statistics import repeats
from bench.evidence.telemetry import telemetry_worth
from bench.evidence.training import training_shares

ROW_EVIDENCE: tuple[RowEvidence, ...] = (
    remarked,
    identities,
    roofline_shares,
    training_shares,
    memory_needs,
    provenance_conflicts,
    cost_identity,
    token_units,
    telemetry_worth,
    energy_identities,
)
GROUP_EVIDENCE: tuple[GroupEvidence, ...] = (repeats, scaling_gains, copied_numbers)
