"""Judge result files and run folders, ours or a peer's, without writing anything.

The rules are evaluated directly to start quickly; great-expectations evaluates them on request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

from bench.audit.claim import ClaimedConfig
from bench.audit.coverage import Coverage, coverage_of
from bench.audit.evidence.evidence import EvidenceByColumn
from bench.audit.judge import Finding, Judged, group_evidence, judge_claim
from bench.audit.rules import BY_COLUMN, Status
from warehouse.audit_inputs import AuditInput, LeftOut, cases_at


@dataclass(frozen=True)
class AuditOptions:
    """How to audit: context missing in the files, a single family of rules, and whether to use great-expectations."""

    context: ClaimedConfig = field(default_factory=ClaimedConfig)
    only: str | None = None
    use_gx: bool = False
    mapped: Mapping[str, str] = field(default_factory=dict)  # headers of tables, and what they mean


@dataclass(frozen=True)
class Audit:
    """Every judged row in the order of the files, and a message for each skipped file of a folder."""

    judged: tuple[Judged, ...]
    left_out: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether no rule fails; rows of which nothing could be checked do not count."""
        return not any(finding.status == "FAIL" for each in self.judged for finding in each.findings)

    @property
    def unchecked_count(self) -> int:
        """Rows of which no number could be checked."""
        return sum(each.verdict == "unchecked" for each in self.judged)


def audit(paths: Sequence[str], terms: AuditOptions) -> Audit:
    """Judge these files, the files below these folders, and standard input where a path is `-`.

    An unreadable file becomes a failed row. Raises UsageError if a path does not exist or is empty.
    """
    found = [each for path in paths for each in cases_at(path, terms.context, terms.mapped)]
    cases = [each for each in found if isinstance(each, AuditInput)]
    groups = group_evidence([case.claim for case in cases])
    whole = [
        replace(case, evidence=_asked_for(more | case.evidence, terms))
        for case, more in zip(cases, groups, strict=True)
    ]
    coverages = [coverage_of(case.claim, case.evidence) for case in cases]
    spoken = _by_gx(whole) if terms.use_gx else repeat(None, len(whole))
    judged = tuple(_judged(*each) for each in zip(whole, spoken, coverages, strict=True))
    return Audit(judged, tuple(dict.fromkeys(each.why for each in found if isinstance(each, LeftOut))))


def _asked_for(evidence: EvidenceByColumn, terms: AuditOptions) -> EvidenceByColumn:
    return {column: value for column, value in evidence.items() if terms.only in (None, BY_COLUMN[column].family)}


def _by_gx(cases: Sequence[AuditInput]) -> Sequence[Mapping[str, Status]]:
    """The statuses of every rule by great-expectations, case by case."""
    from warehouse.judging.expectations import said_of_each  # noqa: PLC0415 - seconds to import

    return said_of_each([case.evidence for case in cases])


def _judged(case: AuditInput, said: Mapping[str, Status] | None, coverage: Coverage) -> Judged:
    if case.broken is None:
        return judge_claim(case.claim, case.evidence, said, case.required, coverage)
    code, why = case.broken
    finding = Finding(code=code, family="reading", scope="row", column="", status="FAIL", message=why)
    return Judged(case.claim, "not-run" if case.claim.outcome == "not-run" else "failed", (finding,))
