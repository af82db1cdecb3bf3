"""Run the rules with great-expectations over one pandas frame: a row for each rule and run, with the rule's bounds.

Few expectations serve all rules: a low and a high end of `tolerated` (critical) and of `passing` (warning).
A rule that does not apply to a run, or that lacks an input, is null in the frame. An empty frame never passes, nor does
a check that raised an error.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from bench.audit.evidence.evidence import EvidenceByColumn, Observed, is_beside_others
from bench.audit.rules import NOT_CHECKABLE, RULES, Rule, Status
from bench.suite.expectations import Severity
from warehouse.judging.validation import built_in, raised, validated

if TYPE_CHECKING:
    import pandas as pd

Bound = Literal["tolerated", "passing", "rows", "present"]
_WITHIN = ("tolerated", "passing")
# The runs that failed each completed check, by column and bound.
Failed = Mapping[tuple[str, Bound], frozenset[str]]


@dataclass(frozen=True)
class EvidenceRow:
    """One row to check: its id and its evidence."""

    run_id: str
    evidence: EvidenceByColumn
    lacking_count: float | None = None  # number of missing required inputs, where it is counted


@dataclass(frozen=True)
class Expectation:
    """One expectation: a column within bounds (null passes), a column without nulls, or a number of rows."""

    code: str
    bound: Bound
    column: str  # "" for the number of rows
    low: float | None
    high: float | None
    severity: Severity


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one check: the rows that failed it, or the error that it raised."""

    check: Expectation
    is_success: bool
    failed_run_ids: tuple[str, ...]
    row_count: int | None  # how many rows it checked
    error: str | None


def checks() -> tuple[Expectation, ...]:
    """Every check of a night, in the order of bench.audit.rules.RULES."""
    return (
        Expectation("has_rows", "rows", "", 1, None, "critical"),
        Expectation("has_run_id", "present", "run_id", None, None, "critical"),
        Expectation("not_checkable", "passing", NOT_CHECKABLE, 0, 0, "warning"),
        *(check for rule in RULES for check in _checks_of(rule)),
    )


def _checks_of(rule: Rule) -> Iterator[Expectation]:
    if rule.tolerated is not None:
        yield Expectation(rule.code, "tolerated", rule.column, *rule.tolerated, "critical")
    yield Expectation(rule.code, "passing", rule.column, *rule.passing, "warning")


def frame_of(cases: Sequence[EvidenceRow]) -> "pd.DataFrame":
    """The evidence of these rows as the frame to check."""
    import pandas as pd  # noqa: PLC0415 - heavy, and only judging needs it

    columns: dict[str, Any] = {"run_id": pd.Series([case.run_id for case in cases], dtype=object)}
    for rule in RULES:
        columns[rule.column] = pd.Series([_value(case, rule) for case in cases], dtype="float64")
    columns[NOT_CHECKABLE] = pd.Series([case.lacking_count for case in cases], dtype="float64")
    return pd.DataFrame(columns)


def _value(case: EvidenceRow, rule: Rule) -> float | None:
    evidence = case.evidence.get(rule.column)
    return evidence.value if isinstance(evidence, Observed) else None


def validate(frame: "pd.DataFrame") -> tuple[ExpectationResult, ...]:
    """Check the frame with great-expectations; one result per check, in their order."""
    return read(ask(frame), frame)


def ask(frame: "pd.DataFrame") -> Any:
    """Compare every value with the bounds of its rule, in one validation; returns great-expectations' own result."""
    import pandas as pd  # noqa: PLC0415

    columns = _columns(frame)
    bounds: dict[str, dict[str, float | str | None]] = {column: {"column": column} for column in columns}
    for check in checks():
        if check.column in bounds:
            bounds[check.column] |= {f"{check.bound}_low": check.low, f"{check.bound}_high": check.high}
    ends = [f"{bound}_{end}" for bound in _WITHIN for end in ("low", "high")]
    table = pd.DataFrame(list(bounds.values()), columns=["column", *ends]).astype(dict.fromkeys(ends, "float64"))
    values = frame.melt(id_vars="run_id", value_vars=columns, var_name="column", value_name="value")
    return validated("evidence", values.merge(table, on="column", how="left"), built_in()["evidence"])


def _columns(frame: "pd.DataFrame") -> list[str]:
    """The columns of evidence that a frame has."""
    return list(dict.fromkeys(check.column for check in checks() if check.bound in _WITHIN and check.column in frame))


def read(validation: Any, frame: "pd.DataFrame") -> tuple[ExpectationResult, ...]:
    """great-expectations' result for this frame, one per check, in their order."""
    columns = _columns(frame)
    found = {bound: _found(bound, validation.results, frame, columns) for bound in get_args(Bound)}
    return tuple(_result(check, found[check.bound], columns) for check in checks())


@dataclass(frozen=True)
class _Found:
    """What the expectations of one bound found: the runs that failed, by column, and the rows of each column."""

    failed: Mapping[str, tuple[str, ...]]
    is_success: bool
    row_count: int | None
    error: str | None


def _found(bound: Bound, results: Sequence[Any], frame: "pd.DataFrame", columns: Sequence[str]) -> _Found:
    asked = [one for one in built_in()["evidence"] if one.meta and one.meta["bound"] == bound]
    said = [result for result in results if result.expectation_config.meta["bound"] == bound]
    errors = [error for result in said if (error := _error_of(result)) is not None]
    if len(said) < len(asked):
        errors.append("great-expectations returned no result")
    failed: dict[str, tuple[str, ...]] = {}
    for place in sorted(place for result in said for place in result.result.get("unexpected_index_list") or ()):
        at, row = divmod(place, len(frame))  # the frame was laid out column after column
        failed[columns[at]] = (*failed.get(columns[at], ()), str(frame["run_id"].iloc[row]))
    counts = [result.result.get("element_count", result.result.get("observed_value")) for result in said]
    row_count = None if None in counts or not counts else min(counts) // max(1, len(columns))
    return _Found(failed, all(result.success for result in said), row_count, errors[0] if errors else None)


def _error_of(result: Any) -> str | None:
    error = raised(result.exception_info or {})
    said = result.result or {}
    if error is None and said.get("unexpected_count", 0) != len(said.get("unexpected_index_list") or ()):
        return "the result does not name every failed row"
    return error


def _result(check: Expectation, found: _Found, columns: Sequence[str]) -> ExpectationResult:
    error = found.error
    if check.bound not in _WITHIN:
        return ExpectationResult(check, found.is_success and error is None, (), found.row_count, error)
    if check.column not in columns:
        error = f"the frame has no column {check.column}"
    failed = found.failed.get(check.column, ())
    return ExpectationResult(check, not failed and error is None, failed, found.row_count, error)


def failed_of(results: Sequence[ExpectationResult]) -> Failed:
    """The rows that failed each completed check."""
    return {(r.check.column, r.check.bound): frozenset(r.failed_run_ids) for r in results if r.error is None}


def status_of(case: EvidenceRow, rule: Rule, failed: Failed) -> Status:
    """The status of one rule in one row."""
    value, outside_passing = _value(case, rule), failed.get((rule.column, "passing"))
    if value is None or math.isnan(value) or outside_passing is None:
        return "NOT-CHECKABLE"
    if case.run_id not in outside_passing:
        return "PASS"
    is_noise = rule.only_doubts_on_a_busy_host and is_beside_others(case.evidence)
    return "FAIL" if case.run_id in failed.get((rule.column, "tolerated"), ()) and not is_noise else "WARN"


def statuses(case: EvidenceRow, failed: Failed) -> dict[str, Status]:
    """The status of every rule that applies to this row, by column, in the order of the rules."""
    return {rule.column: status_of(case, rule, failed) for rule in RULES if rule.column in case.evidence}


def said_of_each(evidence: Sequence[EvidenceByColumn]) -> list[dict[str, Status]]:
    """The statuses of each claim's evidence, checked with great-expectations."""
    sheet = [EvidenceRow(str(at), each) for at, each in enumerate(evidence)]
    failed = failed_of(validate(frame_of(sheet)))
    return [statuses(case, failed) for case in sheet]
