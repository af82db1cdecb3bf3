"""What every measurement is judged by, ours and other people's: one table, a tuple of rules for each sort of doubt."""

from collections.abc import Collection, Mapping

from bench.audit.rules.coherence import COHERENCE_RULES
from bench.audit.rules.identities import IDENTITY_RULES
from bench.audit.rules.imported import IMPORTED_RULES
from bench.audit.rules.money import MONEY_RULES
from bench.audit.rules.night import NIGHT_RULES
from bench.audit.rules.physics import MEMORY_RULES, ROOFLINE_RULES
from bench.audit.rules.provenance import PROVENANCE_RULES
from bench.audit.rules.rule import Evidence, Range, Rule, Scope, Status, Verdict, judge
from bench.audit.rules.telemetry import ENERGY_RULES, TELEMETRY_RULES

__all__ = ["NIGHT_RULES", "Evidence", "Range", "Rule", "Scope", "Status", "Verdict", "judge"]

# What any claim is asked, be it a file of somebody else's or a run of our own.
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
RULES: tuple[Rule, ...] = (*NIGHT_RULES, *CLAIM_RULES)
BY_COLUMN = {rule.column: rule for rule in RULES}
EVIDENCE_COLUMNS = tuple(rule.column for rule in NIGHT_RULES)  # of the table of measurements
# How many required rules lack an input; judged like any other column.
NOT_CHECKABLE = "ev_not_checkable"
REQUIRED = frozenset(rule.column for rule in NIGHT_RULES if rule.is_required)


def verdict(statuses: Mapping[str, Status], required: Collection[str] = REQUIRED) -> Verdict:
    """The verdict of a measured run from what its rules say, by column; no rules at all is never accepted.

    A doubt about single metrics withdraws those and leaves the measurement to the other rules; one that is required
    and cannot be checked counts whatever it is about.
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
