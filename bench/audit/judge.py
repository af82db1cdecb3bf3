"""Judge claims: compare the evidence with the rules and return a verdict and findings for each claim.

The rules are data and are evaluated here directly; in a night's load great-expectations evaluates the same rules.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.audit.claim import Claim
from bench.audit.coverage import Coverage, coverage_of
from bench.audit.evidence import GROUP_EVIDENCE, ROW_EVIDENCE
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject, is_beside_others
from bench.audit.evidence.readings import exact
from bench.audit.rules import BY_COLUMN, Rule, Scope, Status, Verdict, judge, verdict
from bench.audit.rules.rule import Range, inside
from bench.wording import PlainNumber, written_out

# Worst first; a claim's findings stand in this order.
SEVERITY = {"FAIL": "critical", "WARN": "warning", "NOT-CHECKABLE": "info", "PASS": "info"}
_WORST_FIRST: tuple[Status, ...] = ("FAIL", "WARN", "NOT-CHECKABLE", "PASS")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one rule found in one claim.

    `bound` is the limit that was exceeded, or the nearest one. `message` is a sentence for a person.
    """

    code: str
    family: str
    scope: Scope
    column: str
    status: Status
    observed: float | None = None
    bound: float | None = None
    message: str

    @property
    def severity(self) -> str:
        """`critical`, `warning` or `info`."""
        return SEVERITY[self.status]

    @property
    def margin(self) -> float | None:
        """Observed over bound; None where either is unknown or the bound is 0."""
        return self.observed / self.bound if self.bound and self.observed is not None else None


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, and its findings, worst first; `withdrawn` as `withdrawn_of` says."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    withdrawn: tuple[str, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)


def row_evidence(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """The evidence from one claim alone; afterwards its series is no longer needed."""
    return {column: value for each in ROW_EVIDENCE for column, value in each(claim, subject).items()}


def group_evidence(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """The evidence that needs several claims, claim by claim; their series are not read."""
    found: list[EvidenceByColumn] = [{} for _ in claims]
    printed_exactly = [exact(claim) for claim in claims]
    for group in GROUP_EVIDENCE:
        for own, more in zip(found, group(printed_exactly), strict=True):
            own.update(more)
    return found


def judge_claim(
    claim: Claim,
    evidence: EvidenceByColumn,
    statuses: Mapping[str, Status] | None = None,
    required: Collection[str] | None = None,
    coverage: Coverage | None = None,
) -> Judged:
    """The verdict of one claim from its evidence.

    `statuses`, by column, may be those of another judge; `required` are columns, else what the claim's format can give.
    `coverage` is that of the whole evidence, if this is a part of it. A run of our own, for which `required` is given,
    is never unchecked: its rules are required one by one.
    """
    coverage = coverage or coverage_of(claim, evidence)
    is_checked = coverage.is_checked or required is not None
    statuses = status_of_each(evidence) if statuses is None else statuses
    if required is None:
        required = {column for column in statuses if BY_COLUMN[column].code in claim.required}
    findings = [finding_of(BY_COLUMN[column], evidence[column], status) for column, status in statuses.items()]
    ordered = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.status))
    said = _verdict(claim, statuses, required)
    if said in ("accepted", "suspect") and not is_checked:
        said = "unchecked"
    return Judged(claim, said, tuple(ordered), withdrawn_of(evidence, statuses), coverage)


def status_of_each(evidence: EvidenceByColumn) -> dict[str, Status]:
    """The status of each rule, by column, in the order of the rules."""
    is_busy = is_beside_others(evidence)
    return {
        column: judge(rule, value.value if isinstance(value, Observed) else None, is_beside_others=is_busy)
        for column, rule in BY_COLUMN.items()
        if (value := evidence.get(column)) is not None
    }


def withdrawn_of(evidence: EvidenceByColumn, statuses: Mapping[str, Status]) -> tuple[str, ...]:
    """Prefixes of the columns that findings of scope `metric` remove from every view for comparison."""
    found = {
        beginning
        for column, status in statuses.items()
        for beginning in (*_failed(BY_COLUMN[column], status), *_withheld(evidence[column]))
    }
    return tuple(sorted(found))


def _failed(rule: Rule, status: Status) -> tuple[str, ...]:
    return rule.withdraws if rule.scope == "metric" and status == "FAIL" else ()


def _withheld(evidence: Observed | MissingInput) -> tuple[str, ...]:
    return evidence.withholds if isinstance(evidence, Observed) else ()


def _verdict(claim: Claim, statuses: Mapping[str, Status], required: Collection[str]) -> Verdict:
    if claim.outcome != "measured":
        return claim.outcome
    if any(statuses.get(rule.column) == "FAIL" for rule in BY_COLUMN.values() if rule.means_failed):
        return "failed"
    return verdict(statuses, required)


def finding_of(rule: Rule, evidence: Observed | MissingInput, status: Status) -> Finding:
    """What a rule found in its evidence, with the sentence for a person."""
    observed = bound = None
    if isinstance(evidence, MissingInput):
        message = f"not checkable: {evidence.what}"
    else:
        observed, bound, message = evidence.value, nearest_bound(rule, evidence.value), sentence_of(rule, evidence)
    return Finding(
        code=rule.code,
        family=rule.family,
        scope=rule.scope,
        column=rule.column,
        status=status,
        observed=observed,
        bound=bound,
        message=message,
    )


def sentence_of(rule: Rule, evidence: Observed) -> str:
    """The finding's sentence, with the arithmetic behind it."""
    sentence = rule.sentence.format(value=PlainNumber(evidence.value))
    return written_out(f"{sentence}: {evidence.note}" if evidence.note else sentence)


def nearest_bound(rule: Rule, value: float) -> float | None:
    """The limit of the deciding range that the value exceeds or is nearest to; None if it has no limit."""
    ranges: list[Range] = [rule.passing] if rule.tolerated is None else [rule.tolerated, rule.passing]
    decided = next((limits for limits in ranges if not inside(limits, value)), rule.passing)
    return min(_limits(decided), key=lambda limit: abs(limit - value), default=None)


def _limits(limits: Range) -> Iterator[float]:
    return (limit for limit in limits if limit is not None)
