"""Judge a night: verdicts, findings and the validation result, from great-expectations' checks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.judge import Finding, finding_of, withdrawn_of
from bench.audit.rules import BY_COLUMN, NOT_CHECKABLE, REQUIRED, Status, Verdict, is_only_noisy, verdict
from bench.engines.by_name import ENGINES
from bench.wording import counted
from warehouse.judging.expectations import (
    EvidenceRow,
    ExpectationResult,
    Failed,
    ask,
    failed_of,
    frame_of,
    read,
    statuses,
)
from warehouse.judging.table_expectations import Checked
from warehouse.rows.evidence import night_evidence
from warehouse.rows.finding_row import finding_row
from warehouse.schema.columns import withdrawn_columns
from warehouse.schema.row import Row

CHECK_ERRORED = "check_errored"
EXPECTATION_UNMET = "expectation_unmet"
More = Mapping[str, EvidenceByColumn]


@dataclass(frozen=True)
class Judgement:
    """The judgement of a night: a verdict per run, every finding, and the validation result as JSON values.

    `withdrawn` are the columns, by run id, that findings about single metrics remove from the views; `noisy` are the
    runs that nothing but noise makes suspect; `validated` is great-expectations' own result, for its Data Docs.
    """

    verdicts: dict[str, Verdict]
    withdrawn: dict[str, list[str]]
    findings: list[Row]
    validation: dict[str, Any]
    noisy: frozenset[str] = frozenset()
    validated: Any = None


def judge_night(rows: Sequence[Row], more: More | None = None) -> Judgement:
    """Judge the measurements of one night; the verdict of an unmeasured run is its outcome.

    `more` is evidence by run id that is not part of the rows.
    """
    more = more or {}
    frame = frame_of(cases_of(rows, more))
    validated = ask(frame)
    return replace(judge(rows, read(validated, frame), more), validated=validated)


def cases_of(rows: Sequence[Row], more: More) -> list[EvidenceRow]:
    """The measured rows as input of the checks."""
    return [_case(row, more) for row in rows if row["outcome"] == "measured"]


def _case(row: Row, more: More) -> EvidenceRow:
    return EvidenceRow(row["run_id"], {**more.get(row["run_id"], {}), **night_evidence(row)}, row[NOT_CHECKABLE])


def judge(rows: Sequence[Row], results: Sequence[ExpectationResult], more: More | None = None) -> Judgement:
    """Turn check results into statuses, findings and verdicts."""
    results = [_that_saw(result, sum(row["outcome"] == "measured" for row in rows)) for result in results]
    failed = failed_of(results)
    broken = [r for r in results if r.error is not None or (r.check.bound in ("rows", "present") and not r.is_success)]
    verdicts: dict[str, Verdict] = {}
    withdrawn: dict[str, list[str]] = {}
    findings: list[Row] = []
    noisy: set[str] = set()
    for row in rows:
        if row["outcome"] != "measured":
            verdicts[row["run_id"]] = row["outcome"]
            continue
        case = _case(row, more or {})
        found = {**dict(_findings_of(row, case, failed)), **_broken_checks(row, broken)}
        of_each = {column: finding["status"] for column, finding in found.items()}
        verdicts[row["run_id"]] = verdict(of_each, _required(row))
        noisy |= {row["run_id"]} if is_only_noisy(of_each, _required(row)) else set()
        beginnings = withdrawn_of(case.evidence, statuses(case, failed))
        withdrawn[row["run_id"]] = withdrawn_columns("measurements", row, beginnings)
        findings += found.values()
    return Judgement(verdicts, withdrawn, findings, _validation(results), frozenset(noisy))


def _that_saw(result: ExpectationResult, row_count: int) -> ExpectationResult:
    """The result, marked as an error if the check did not see exactly the judged rows."""
    if result.error is not None or result.row_count == row_count:
        return result
    return replace(result, is_success=False, error=f"it checked {result.row_count} of {row_count} rows")


def _findings_of(row: Row, case: EvidenceRow, failed: Failed) -> Iterator[tuple[str, Row]]:
    """Every finding of a row, by evidence column."""
    for column, status in statuses(case, failed).items():
        yield column, _rule_finding(row, column, case.evidence, status)
    if row["run_id"] in failed.get((NOT_CHECKABLE, "passing"), ()):
        yield NOT_CHECKABLE, _unclear(row)


def _rule_finding(row: Row, column: str, evidence: EvidenceByColumn, status: Status) -> Row:
    finding = finding_of(BY_COLUMN[column], evidence[column], status)
    if status == "NOT-CHECKABLE" and isinstance(evidence[column], Observed):
        finding = replace(finding, message=f"not checkable: the check of {column} failed")
    more = {}
    if status == "NOT-CHECKABLE" and column in _required(row):
        more["severity"] = "warning"  # other rules apply only where their input may exist
    return _ids(row) | finding_row(finding) | more


def _required(row: Row) -> frozenset[str]:
    """The columns without which a run of its engine is doubted."""
    return REQUIRED - ENGINES[row["engine"]].UNCOUNTED


def _unclear(row: Row) -> Row:
    said = counted(row[NOT_CHECKABLE], "required check lacks its input", "required checks lack their input")
    return _ids(row) | finding_row(
        Finding(
            code="not_checkable",
            family="completeness",
            scope="row",
            column=NOT_CHECKABLE,
            status="WARN",
            observed=row[NOT_CHECKABLE],
            message=said,
        )
    )


def _broken_checks(row: Row, broken: Sequence[ExpectationResult]) -> dict[str, Row]:
    if not broken:
        return {}
    names = ", ".join(f"{r.check.code} ({r.check.bound}): {r.error or 'failed'}" for r in broken)
    finding = Finding(
        code=CHECK_ERRORED,
        family="check",
        scope="row",
        column=CHECK_ERRORED,
        status="FAIL",
        observed=float(len(broken)),
        message=f"checks failed to run: {names}",
    )
    return {CHECK_ERRORED: _ids(row) | finding_row(finding)}


def with_unmet(judged: Judgement, rows: Sequence[Row], unmet: Sequence[Checked]) -> Judgement:
    """The judgement with a finding for each measured run that an expectation about a table does not hold of.

    A critical expectation rejects the run; a warning makes an accepted one suspect; one that informs does neither.
    """
    verdicts, findings, noisy = dict(judged.verdicts), list(judged.findings), set(judged.noisy)
    for row in rows:
        run_id = row["run_id"]
        doubts = [one for one in unmet if run_id in one.run_ids and one.row["severity"] != "info"]
        if row["outcome"] == "measured" and doubts:
            findings += [_ids(row) | finding_row(_unmet(one)) for one in doubts]
            noisy.discard(run_id)
            is_critical = any(one.row["status"] == "FAIL" for one in doubts)
            worse = {"accepted": "rejected", "suspect": "rejected"} if is_critical else {"accepted": "suspect"}
            verdicts[run_id] = cast("Verdict", worse.get(verdicts[run_id], verdicts[run_id]))
    return replace(judged, verdicts=verdicts, findings=findings, noisy=frozenset(noisy))


def _unmet(one: Checked) -> Finding:
    count = one.row["unexpected_count"]
    return Finding(
        code=EXPECTATION_UNMET,
        family="check",
        scope="row",
        column=EXPECTATION_UNMET,
        status=one.row["status"],
        observed=None if count is None else float(count),
        message=str(one),
    )


def _ids(row: Row) -> Row:
    return {name: row[name] for name in ("night", "run_id", "scenario_id", "repeat")}


def _validation(results: Sequence[ExpectationResult]) -> dict[str, Any]:
    """The whole result as JSON values; without times, so that judging twice gives the same bytes."""
    return {
        "success": bool(results) and all(result.is_success for result in results),
        "checks": [
            {**asdict(result.check), "success": result.is_success, "error": result.error}
            | {"failed_count": len(result.failed_run_ids), "failed_run_ids": list(result.failed_run_ids)}
            for result in results
        ],
    }
