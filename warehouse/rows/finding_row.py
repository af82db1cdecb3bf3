"""A finding as the columns that the tables `findings` and `claim_findings` share."""

from bench.audit.judge import Finding
from bench.audit.rules import BY_COLUMN
from warehouse.schema.row import Row

_UNBOUNDED = (None, None)


def finding_row(finding: Finding) -> Row:
    """The finding's own columns; a finding without a rule has no bounds."""
    rule = BY_COLUMN.get(finding.column)
    passing_low, passing_high = rule.passing if rule else _UNBOUNDED
    tolerated_low, tolerated_high = (rule.tolerated if rule else None) or _UNBOUNDED
    return {
        "code": finding.code,
        "family": finding.family,
        "severity": finding.severity,
        "scope": finding.scope,
        "status": finding.status,
        "observed": finding.observed,
        "passing_low": passing_low,
        "passing_high": passing_high,
        "tolerated_low": tolerated_low,
        "tolerated_high": tolerated_high,
        "message": finding.message,
    }
