"""Run the rules with great-expectations over one pandas frame: each rule becomes two expectations.

They are `tolerated` (critical) and `passing` (warning). A rule that does not apply to a row, or that lacks an input, is
null in the frame. An empty frame never passes, nor does a check that raised an error.
"""

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.audit.rules import NOT_CHECKABLE, RULES, Rule, Status

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["critical", "warning", "info"]
Bound = Literal["tolerated", "passing", "rows", "present"]
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


def great_expectations() -> Any:
    """The library, which takes seconds to import the first time; only judging needs it."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read on import: disables usage reports
    import great_expectations as gx  # noqa: PLC0415

    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it logs each folder that it creates
    return gx


@contextmanager
def imported_meanwhile() -> Iterator[None]:
    """Import great-expectations in a thread while the block waits for something; it has ended when this returns.

    An error of the import is not raised here: it is raised again where the library is used.
    """
    with ThreadPoolExecutor(1, "import") as pool:
        pool.submit(great_expectations)
        yield


def ask(frame: "pd.DataFrame") -> Any:
    """Check every column of the frame that has values; returns great-expectations' own result."""
    gx = great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = cast("Any", {"globally": False})
    asset = context.data_sources.add_pandas("night").add_dataframe_asset("measurements")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
    filled = _filled(frame)
    expected = [_expectation(check, at) for at, check in enumerate(checks()) if _has_values(filled, frame, check)]
    suite = gx.ExpectationSuite(name="night", expectations=expected)
    wanted = {"result_format": "COMPLETE", "unexpected_index_column_names": ["run_id"]}
    return batch.validate(suite, result_format=cast("Any", wanted))


def read(validated: Any, frame: "pd.DataFrame") -> tuple[ExpectationResult, ...]:
    """great-expectations' result for this frame, one per check, in their order."""
    # Results are unordered; an expectation without a result was not checked.
    said, filled = {_place_of(result): result for result in validated.results}, _filled(frame)
    return tuple(
        _read_result(check, said.get(at))
        if _has_values(filled, frame, check)
        else ExpectationResult(check, True, (), len(frame), None)
        for at, check in enumerate(checks())
    )


def _filled(frame: "pd.DataFrame") -> frozenset[str]:
    """The columns that have a value."""
    return frozenset(frame.columns[frame.notna().any()])


def _has_values(filled: frozenset[str], frame: "pd.DataFrame", check: Expectation) -> bool:
    """Whether the column has values: nulls pass, and checking a column of nulls takes as long."""
    is_of_values = check.bound in ("tolerated", "passing") and check.column in frame
    return not is_of_values or check.column in filled


def _place_of(result: Any) -> int:
    return int(result.expectation_config.meta["at"])


def _expectation(check: Expectation, at: int) -> Any:
    from great_expectations import expectations  # noqa: PLC0415

    from warehouse.judging.bounds_expectation import ExpectEvidenceToBeBetween  # noqa: PLC0415

    gxe: Any = expectations  # the names exist, but are not declared as exported
    common: dict[str, Any] = {"severity": check.severity, "meta": {"at": at}}
    if check.bound == "rows":
        return gxe.ExpectTableRowCountToBeBetween(min_value=1, **common)
    if check.bound == "present":
        return gxe.ExpectColumnValuesToNotBeNull(column=check.column, **common)
    # Both bounds are inclusive, as in bench.audit.rules.judge.
    limits: dict[str, Any] = {"min_value": check.low, "max_value": check.high, "strict_min": False, "strict_max": False}
    return ExpectEvidenceToBeBetween(column=check.column, **limits, **common)


def _read_result(check: Expectation, result: Any) -> ExpectationResult:
    if result is None:
        return ExpectationResult(check, False, (), None, "great-expectations returned no result")
    said = result.result or {}
    failed = tuple(str(entry["run_id"]) for entry in said.get("unexpected_index_list") or ())
    error = raised(result.exception_info or {})
    if error is None and said.get("unexpected_count", 0) != len(failed):
        error = "the result does not name every failed row"
    row_count = said.get("observed_value" if check.bound == "rows" else "element_count")
    return ExpectationResult(check, bool(result.success) and error is None, failed, row_count, error)


def raised(exception_info: Mapping[str, Any]) -> str | None:
    """The error message of a failed check; great-expectations stores it flat or once per metric."""
    shapes = [exception_info, *(value for value in exception_info.values() if isinstance(value, Mapping))]
    messages = [str(shape.get("exception_message")) for shape in shapes if shape.get("raised_exception")]
    return messages[0] if messages else None


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
    return "FAIL" if case.run_id in failed.get((rule.column, "tolerated"), ()) else "WARN"


def statuses(case: EvidenceRow, failed: Failed) -> dict[str, Status]:
    """The status of every rule that applies to this row, by column, in the order of the rules."""
    return {rule.column: status_of(case, rule, failed) for rule in RULES if rule.column in case.evidence}


def said_of_each(evidence: Sequence[EvidenceByColumn]) -> list[dict[str, Status]]:
    """The statuses of each claim's evidence, checked with great-expectations."""
    sheet = [EvidenceRow(str(at), each) for at, each in enumerate(evidence)]
    failed = failed_of(validate(frame_of(sheet)))
    return [statuses(case, failed) for case in sheet]
