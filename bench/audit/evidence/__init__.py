"""The numbers a claim is judged by, one file for each sort of doubt."""

from bench.audit.evidence.copies import copied_numbers
from bench.audit.evidence.cost import cost_identity, token_units
from bench.audit.evidence.energy import energy_identities
from bench.audit.evidence.evidence import GroupEvidence, RowEvidence
from bench.audit.evidence.identities import identities
from bench.audit.evidence.importer_remarks import budgeted, remarked
from bench.audit.evidence.memory import memory_needs
from bench.audit.evidence.provenance import provenance_conflicts
from bench.audit.evidence.readings import at_generous_ends, of_exact_numbers, under_every_reading
from bench.audit.evidence.roofline import roofline_shares
from bench.audit.evidence.scaling import scaled_instances, scaling_gains
from bench.audit.evidence.statistics import repeats
from bench.audit.evidence.telemetry import telemetry_worth
from bench.audit.evidence.training import training_shares

ROW_EVIDENCE: tuple[RowEvidence, ...] = (
    remarked,
    budgeted,
    of_exact_numbers(identities),
    under_every_reading(at_generous_ends(roofline_shares)),
    under_every_reading(at_generous_ends(training_shares)),
    under_every_reading(of_exact_numbers(memory_needs)),
    provenance_conflicts,
    cost_identity,
    token_units,
    telemetry_worth,
    energy_identities,
)
GROUP_EVIDENCE: tuple[GroupEvidence, ...] = (repeats, scaling_gains, scaled_instances, copied_numbers)
