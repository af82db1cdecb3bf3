"""The rules that judge every measurement, our own and imported: a tuple for each sort of doubt."""

from collections.abc import Collection, Mapping

from bench.audit.rules.coherence import COHERENCE_RULES
from bench.audit.rules.identities import IDENTITY_RULES
from bench.audit.rules.imported import IMPORTED_RULES
from bench.audit.rules.machine import MACHINE_RULES
from bench.audit.rules.money import MONEY_RULES
from bench.audit.rules.night import NIGHT_RULES
from bench.audit.rules.physics import MEMORY_RULES, ROOFLINE_RULES
from bench.audit.rules.provenance import PROVENANCE_RULES
from bench.audit.rules.rule import Evidence, Range, Rule, Scope, Status, Verdict, judge
from bench.audit.rules.telemetry import ENERGY_RULES, TELEMETRY_RULES

__all__ = ["NIGHT_RULES", "Evidence", "Range", "Rule", "Scope", "Status", "Verdict", "judge"]

# The rules for any claim: a run of our own, or a file of another tool.
CLAIM_RULES: tuple[Rule, ...] = (
    *IMPORTED_RULES,
    *IDENTITY_RULES,
    *ROOFLINE_RULES,
    *MEMORY_RULES,
    *PROVENANCE_RULES,
    *MONEY_RULES,
    *TELEMETRY_RULES,
    *ENERGY_RULES,
    *COHERENCE_RULES,
)
RULES: tuple[Rule, ...] = (*NIGHT_RULES, *CLAIM_RULES, *MACHINE_RULES)
BY_COLUMN = {rule.column: rule for rule in RULES}
EVIDENCE_COLUMNS = tuple(rule.column for rule in NIGHT_RULES)  # of the table of measurements
# How many required rules lack an input; judged like any other column.
NOT_CHECKABLE = "ev_not_checkable"
REQUIRED = frozenset(rule.column for rule in NIGHT_RULES if rule.is_required)


def verdict(statuses: Mapping[str, Status], required: Collection[str] = REQUIRED) -> Verdict:
    """The verdict of a measured run from the status of each column; without any rule it is suspect.

    A rule of scope `metric` does not count, unless it is required and NOT-CHECKABLE.
    """
    unclear = [column for column, status in statuses.items() if status == "NOT-CHECKABLE" and column in required]
    counted = {
        column: status
        for column, status in statuses.items()
        if column not in BY_COLUMN or BY_COLUMN[column].scope != "metric"
    }
    if not counted:
        return "suspect"
    if "FAIL" in counted.values():
        return "rejected"
    return "suspect" if unclear or "WARN" in counted.values() else "accepted"


def is_only_noisy(statuses: Mapping[str, Status], required: Collection[str] = REQUIRED) -> bool:
    """Whether a run is suspect for noise on its host, and for nothing else."""
    others = {
        column: status
        for column, status in statuses.items()
        if column not in BY_COLUMN or not BY_COLUMN[column].is_noise
    }
    return verdict(statuses, required) == "suspect" and verdict(others, required) == "accepted"
