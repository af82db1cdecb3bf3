"""bench.audit's rules as great-expectations over one pandas frame a night.

Each rule is two expectations, `tolerated` (critical) and `passing` (warning). A rule that does not apply to a row is
masked to null there. An empty frame never passes, nor does a check that itself broke: then every row is rejected.
"""

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from bench.rules import NIGHT_RULES, NOT_CHECKABLE, Rule, Status, Verdict, verdict
from warehouse.columns import outside_bounds
from warehouse.rows import Row

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["critical", "warning", "info"]
Bound = Literal["tolerated", "passing", "rows", "present"]
# The runs that failed each check which could be made, by column and bound.
Failed = Mapping[tuple[str, Bound], frozenset[str]]
IMPOSSIBLE = "impossible_values"
CHECK_ERRORED = "check_errored"
_SEVERITY: dict[Status, Severity] = {"FAIL": "critical", "WARN": "warning", "NOT-CHECKABLE": "warning", "PASS": "info"}


@dataclass(frozen=True)
class Check:
    """One expectation: a column within bounds (null passes), a column without nulls, or a number of rows."""

    code: str
    bound: Bound
    column: str  # "" for the number of rows, which is of no column
    low: float | None
    high: float | None
    severity: Severity


@dataclass(frozen=True)
class CheckResult:
    """What great-expectations said of one check: the rows that failed it, or the error that kept it from saying."""

    check: Check
    is_success: bool
    failed_run_ids: tuple[str, ...]
    row_count: int | None  # how many rows it looked at
    error: str | None


@dataclass(frozen=True)
class Judgement:
    """What is thought of a night: a verdict a run, every finding, and the validation result as JSON-able values."""

    verdicts: dict[str, Verdict]
    findings: list[Row]
    validation: dict[str, Any]


def judge_night(rows: Sequence[Row]) -> Judgement:
    """Judge the measurements of one night; a run that was not measured has its outcome as its verdict."""
    measured = [row for row in rows if row["outcome"] == "measured"]
    results = validate(frame_of(measured))
    return judge(rows, results)


def checks() -> tuple[Check, ...]:
    """Every check of a night, in the order of bench.audit.NIGHT_RULES."""
    return (
        Check("has_rows", "rows", "", 1, None, "critical"),
        Check("has_run_id", "present", "run_id", None, None, "critical"),
        Check(IMPOSSIBLE, "tolerated", IMPOSSIBLE, 0, 0, "critical"),
        Check("not_checkable", "passing", NOT_CHECKABLE, 0, 0, "warning"),
        *(check for rule in NIGHT_RULES for check in _checks_of(rule)),
    )


def _checks_of(rule: Rule) -> Iterator[Check]:
    if rule.tolerated is not None:
        yield Check(rule.code, "tolerated", rule.column, *rule.tolerated, "critical")
    yield Check(rule.code, "passing", rule.column, *rule.passing, "warning")


def frame_of(rows: Sequence[Row]) -> "pd.DataFrame":
    """Measured rows as the frame that is checked: their evidence, nulls where it is missing or does not apply."""
    import pandas as pd  # noqa: PLC0415 - heavy, and only judging needs it

    columns: dict[str, Any] = {"run_id": pd.Series([row["run_id"] for row in rows], dtype=object)}
    for rule in NIGHT_RULES:
        values = [row[rule.column] if _applies(rule, row) else None for row in rows]
        columns[rule.column] = pd.Series(values, dtype="float64")
    columns[NOT_CHECKABLE] = pd.Series([row[NOT_CHECKABLE] for row in rows], dtype="float64")
    columns[IMPOSSIBLE] = pd.Series([len(outside_bounds(row)) for row in rows], dtype="float64")
    return pd.DataFrame(columns)


def _applies(rule: Rule, row: Mapping[str, Any]) -> bool:
    loop = "closed" if row["arrivals"] == "closed" else "open"
    return rule.applies(loop, row["driver"], is_exact=row["prompt_form"] == "tokens")


def validate(frame: "pd.DataFrame") -> tuple[CheckResult, ...]:
    """Have great-expectations check the frame; one result a check, in their order."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read on import: nothing is reported to anybody
    import great_expectations as gx  # noqa: PLC0415 - seconds to import, and only judging needs it

    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it tells of each folder it makes

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = cast("Any", {"globally": False})
    asset = context.data_sources.add_pandas("night").add_dataframe_asset("measurements")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
    every = checks()
    suite = gx.ExpectationSuite(name="night", expectations=[_expectation(check, at) for at, check in enumerate(every)])
    wanted = {"result_format": "COMPLETE", "unexpected_index_column_names": ["run_id"]}
    validated = batch.validate(suite, result_format=cast("Any", wanted))
    # Results come in an order of their own; an expectation without one has not been checked.
    said = {_place_of(result): result for result in validated.results}
    return tuple(_read_result(check, said.get(at)) for at, check in enumerate(every))


def _place_of(result: Any) -> int:
    return int(result.expectation_config.meta["at"])


def _expectation(check: Check, at: int) -> Any:
    from great_expectations import expectations  # noqa: PLC0415

    gxe: Any = expectations  # its names are there, but it does not say that it exports them
    common: dict[str, Any] = {"severity": check.severity, "meta": {"at": at}}
    if check.bound == "rows":
        return gxe.ExpectTableRowCountToBeBetween(min_value=1, **common)
    if check.bound == "present":
        return gxe.ExpectColumnValuesToNotBeNull(column=check.column, **common)
    # Both bounds belong to the range, as they do in bench.audit.judge.
    limits = {"min_value": check.low, "max_value": check.high, "strict_min": False, "strict_max": False}
    return gxe.ExpectColumnValuesToBeBetween(column=check.column, **limits, **common)


def _read_result(check: Check, result: Any) -> CheckResult:
    if result is None:
        return CheckResult(check, False, (), None, "great-expectations gave no result")
    said = result.result or {}
    failed = tuple(str(entry["run_id"]) for entry in said.get("unexpected_index_list") or ())
    error = raised(result.exception_info or {})
    if error is None and said.get("unexpected_count", 0) != len(failed):
        error = "it does not name every row that failed"
    row_count = said.get("observed_value" if check.bound == "rows" else "element_count")
    return CheckResult(check, bool(result.success) and error is None, failed, row_count, error)


def raised(exception_info: Mapping[str, Any]) -> str | None:
    """The message of a check that broke; great-expectations writes it flat, or once for each metric."""
    shapes = [exception_info, *(value for value in exception_info.values() if isinstance(value, Mapping))]
    messages = [str(shape.get("exception_message")) for shape in shapes if shape.get("raised_exception")]
    return messages[0] if messages else None


def _that_saw(result: CheckResult, row_count: int) -> CheckResult:
    """The result, as one that broke where the check did not look at exactly the rows that are judged."""
    if result.error is not None or result.row_count == row_count:
        return result
    return replace(result, is_success=False, error=f"it looked at {result.row_count} of {row_count} rows")


def judge(rows: Sequence[Row], results: Sequence[CheckResult]) -> Judgement:
    """Turn check results into statuses, findings and verdicts."""
    results = [_that_saw(result, sum(row["outcome"] == "measured" for row in rows)) for result in results]
    failed: Failed = {(r.check.column, r.check.bound): frozenset(r.failed_run_ids) for r in results if r.error is None}
    broken = [r for r in results if r.error is not None or (r.check.bound in ("rows", "present") and not r.is_success)]
    verdicts: dict[str, Verdict] = {}
    findings: list[Row] = []
    for row in rows:
        if row["outcome"] != "measured":
            verdicts[row["run_id"]] = row["outcome"]
            continue
        found = {**dict(_findings_of(row, failed)), **_broken_checks(row, broken)}
        verdicts[row["run_id"]] = verdict({column: finding["status"] for column, finding in found.items()})
        findings += found.values()
    return Judgement(verdicts, findings, _validation(results))


def _findings_of(row: Row, failed: Failed) -> Iterator[tuple[str, Row]]:
    """Every finding of a row, by the column it is about."""
    for rule in NIGHT_RULES:
        if _applies(rule, row):
            status = _status(row["run_id"], rule, row[rule.column], failed)
            yield rule.column, _rule_finding(row, rule, status)
    if row["run_id"] in failed.get((NOT_CHECKABLE, "passing"), ()):
        said = f"{row[NOT_CHECKABLE]:.0f} required checks lack what they compare"
        yield NOT_CHECKABLE, _finding(row, ("not_checkable", "completeness", "WARN"), row[NOT_CHECKABLE], said)
    if row["run_id"] in failed.get((IMPOSSIBLE, "tolerated"), ()):
        names = outside_bounds(row)
        said = f"values that cannot be: {', '.join(f'{name} = {row[name]}' for name in names)}"
        yield IMPOSSIBLE, _finding(row, (IMPOSSIBLE, "arithmetic", "FAIL"), float(len(names)), said)


def _status(run_id: str, rule: Rule, value: float | None, failed: Failed) -> Status:
    outside_passing = failed.get((rule.column, "passing"))
    if value is None or math.isnan(value) or outside_passing is None:
        return "NOT-CHECKABLE"
    if run_id not in outside_passing:
        return "PASS"
    return "FAIL" if run_id in failed.get((rule.column, "tolerated"), ()) else "WARN"


def _rule_finding(row: Row, rule: Rule, status: Status) -> Row:
    value = row[rule.column]
    lacking = f"{rule.code} could not be checked: {rule.column} is missing or its check broke"
    if rule.lacking is not None and value is None:
        lacking = rule.lacking.format_map(row)
    said = lacking if status == "NOT-CHECKABLE" else rule.sentence.format(value=value)
    finding = _finding(row, (rule.code, rule.family, status), value, said)
    low, high = rule.passing
    tolerated_low, tolerated_high = rule.tolerated or (None, None)
    limits = {"passing_low": low, "passing_high": high}
    if status == "NOT-CHECKABLE" and not rule.is_required:
        finding["severity"] = "info"  # it was only asked where it could be
    return finding | limits | {"tolerated_low": tolerated_low, "tolerated_high": tolerated_high}


def _broken_checks(row: Row, broken: Sequence[CheckResult]) -> dict[str, Row]:
    if not broken:
        return {}
    names = ", ".join(f"{r.check.code} ({r.check.bound}): {r.error or 'failed'}" for r in broken)
    said = f"checks could not be made: {names}"
    return {CHECK_ERRORED: _finding(row, (CHECK_ERRORED, "check", "FAIL"), float(len(broken)), said)}


def _finding(row: Row, what: tuple[str, str, Status], observed: float | None, message: str) -> Row:
    code, family, status = what
    ids = {name: row[name] for name in ("night", "run_id", "scenario_id", "repeat")}
    limits = dict.fromkeys(("passing_low", "passing_high", "tolerated_low", "tolerated_high"))
    said = {"code": code, "family": family, "severity": _SEVERITY[status], "status": status}
    return {**ids, **said, "observed": observed, **limits, "message": message}


def _validation(results: Sequence[CheckResult]) -> dict[str, Any]:
    """The whole result as JSON-able values; no times, so that judging twice gives the same."""
    return {
        "success": bool(results) and all(result.is_success for result in results),
        "checks": [
            {**asdict(result.check), "success": result.is_success, "error": result.error}
            | {"failed_count": len(result.failed_run_ids), "failed_run_ids": list(result.failed_run_ids)}
            for result in results
        ],
    }
