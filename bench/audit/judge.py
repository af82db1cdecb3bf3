"""Judge claims: evidence from every sort of doubt, held against the rules; a verdict a claim and its findings.

The rules are data and are evaluated directly here; great-expectations judges from the same ones in every night's load.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.audit.claim import Claim
from bench.audit.evidence import GROUP_EVIDENCE, ROW_EVIDENCE
from bench.audit.evidence.evidence import EvidenceByColumn, MissingInput, Observed, Subject
from bench.audit.rules import BY_COLUMN, Rule, Scope, Status, Verdict, judge, verdict
from bench.audit.rules.rule import Range, inside
from bench.wording import PlainNumber, written_out

# Worst first; a claim's findings stand in this order.
SEVERITY = {"FAIL": "critical", "WARN": "warning", "NOT-CHECKABLE": "info", "PASS": "info"}
_WORST_FIRST: tuple[Status, ...] = ("FAIL", "WARN", "NOT-CHECKABLE", "PASS")


@dataclass(frozen=True)
class Finding:
    """What one rule says of one claim.

    `bound` is the limit that was passed, or that is nearest where none was; `margin` is observed over bound, None where
    that is no number. `message` is a sentence for a person.
    """

    code: str
    family: str
    scope: Scope
    column: str
    outcome: Status
    observed: float | None
    bound: float | None
    margin: float | None
    message: str

    @property
    def severity(self) -> str:
        """`critical`, `warning` or `info`."""
        return SEVERITY[self.outcome]


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, and its findings, worst first; `withdrawn` as `withdrawn_of` says."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    withdrawn: tuple[str, ...] = ()


def row_exhibits(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """The evidence that one claim gives alone; afterwards its series is no longer needed."""
    return {column: value for each in ROW_EVIDENCE for column, value in each(claim, subject).items()}


def group_exhibits(claims: Sequence[Claim]) -> list[EvidenceByColumn]:
    """The evidence that only several claims together give, claim by claim; their series are not looked at."""
    found: list[EvidenceByColumn] = [{} for _ in claims]
    for group in GROUP_EVIDENCE:
        for own, more in zip(found, group(claims), strict=True):
            own.update(more)
    return found


def judge_claims(claims: Sequence[Claim], subject_of: Callable[[Claim], Subject]) -> list[Judged]:
    """A verdict for each claim, in their order."""
    together = group_exhibits(claims)
    return [
        judge_claim(claim, row_exhibits(claim, subject_of(claim)) | more)
        for claim, more in zip(claims, together, strict=True)
    ]


def judge_claim(
    claim: Claim,
    exhibits: EvidenceByColumn,
    statuses: Mapping[str, Status] | None = None,
    required: Collection[str] | None = None,
) -> Judged:
    """The verdict of one claim from its evidence.

    `statuses`, by column, may be those of another judge; `required` are columns, else what the claim's format can give.
    """
    statuses = status_of_each(exhibits) if statuses is None else statuses
    if required is None:
        required = {column for column in statuses if BY_COLUMN[column].code in claim.required}
    findings = [_finding(BY_COLUMN[column], exhibits[column], status) for column, status in statuses.items()]
    ordered = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.outcome))
    return Judged(claim, _verdict(claim, statuses, required), tuple(ordered), withdrawn_of(exhibits, statuses))


def status_of_each(exhibits: EvidenceByColumn) -> dict[str, Status]:
    """What each rule says, by column, in the order of the rules."""
    return {
        column: judge(rule, value.value if isinstance(value, Observed) else None)
        for column, rule in BY_COLUMN.items()
        if (value := exhibits.get(column)) is not None
    }


def withdrawn_of(exhibits: EvidenceByColumn, statuses: Mapping[str, Status]) -> tuple[str, ...]:
    """How the columns begin that findings about single metrics take out of every view for comparison."""
    found = {
        beginning
        for column, status in statuses.items()
        for beginning in (*_failed(BY_COLUMN[column], status), *_withheld(exhibits[column]))
    }
    return tuple(sorted(found))


def _failed(rule: Rule, status: Status) -> tuple[str, ...]:
    return rule.withdraws if rule.scope == "metric" and status == "FAIL" else ()


def _withheld(exhibit: Observed | MissingInput) -> tuple[str, ...]:
    return exhibit.withholds if isinstance(exhibit, Observed) else ()


def _verdict(claim: Claim, statuses: Mapping[str, Status], required: Collection[str]) -> Verdict:
    if claim.outcome != "measured":
        return claim.outcome
    if any(statuses.get(rule.column) == "FAIL" for rule in BY_COLUMN.values() if rule.means_failed):
        return "failed"
    return verdict(statuses, required)


def _finding(rule: Rule, exhibit: Observed | MissingInput, status: Status) -> Finding:
    if isinstance(exhibit, MissingInput):
        said = f"not checkable: {exhibit.what}"
        return Finding(rule.code, rule.family, rule.scope, rule.column, status, None, None, None, said)
    bound = nearest_bound(rule, exhibit.value)
    margin = exhibit.value / bound if bound else None
    return Finding(
        rule.code, rule.family, rule.scope, rule.column, status, exhibit.value, bound, margin, said_of(rule, exhibit)
    )


def said_of(rule: Rule, exhibit: Observed) -> str:
    """The finding's sentence, with the arithmetic behind it."""
    said = rule.sentence.format(value=PlainNumber(exhibit.value))
    return written_out(f"{said}: {exhibit.note}" if exhibit.note else said)


def nearest_bound(rule: Rule, value: float) -> float | None:
    """Of the range that decided, the limit that the value is beyond or nearest to; None where it has none."""
    ranges: list[Range] = [rule.passing] if rule.tolerated is None else [rule.tolerated, rule.passing]
    decided = next((limits for limits in ranges if not inside(limits, value)), rule.passing)
    return min(_limits(decided), key=lambda limit: abs(limit - value), default=None)


def _limits(limits: Range) -> Iterator[float]:
    return (limit for limit in limits if limit is not None)
