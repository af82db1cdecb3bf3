"""Judge run folders where they stand, by the same rules as a load; nothing is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UnreadableResultError, UsageError
from bench.rules import Status, Verdict
from warehouse.expectations import judge_night
from warehouse.folders import RECORD, Place, read_run
from warehouse.rows import Row, run_rows, unreadable_row

_WORST_FIRST: tuple[Status, ...] = ("FAIL", "WARN", "NOT-CHECKABLE", "PASS")


@dataclass(frozen=True)
class RunFinding:
    """What one rule says of a run."""

    outcome: Status
    code: str
    message: str


@dataclass(frozen=True)
class JudgedRun:
    """A run folder's verdict, and its findings, worst first."""

    file: str
    verdict: Verdict
    findings: tuple[RunFinding, ...]


def judge_folders(paths: Sequence[Path]) -> list[JudgedRun]:
    """Judge these run folders, or those below these folders; raises UsageError where a path holds none."""
    folders = [folder for path in paths for folder in _run_folders(path)]
    rows = [_row(folder) for folder in folders]
    judged = judge_night(rows)
    return [
        JudgedRun(str(folder), judged.verdicts[row["run_id"]], _findings(row, judged.findings))
        for folder, row in zip(folders, rows, strict=True)
    ]


def _run_folders(path: Path) -> list[Path]:
    records = [path / RECORD] if (path / RECORD).is_file() else sorted(path.rglob(f"*/*/{RECORD}"))
    shown = [record.parent for record in records if not record.parent.name.startswith(".")]
    if not shown:
        raise UsageError(f"{path} is no run folder and holds none: a run folder has a {RECORD}")
    return shown


def _row(folder: Path) -> Row:
    """The row of a run folder, under its path as an id: two data folders may hold runs of the same id."""
    scenario, name = folder.absolute().parent, folder.name
    place = Place(scenario.parent.name, scenario.name, int(name) if name.isdecimal() else 0)
    try:
        row = run_rows(place, read_run(folder)).measurement
    except UnreadableResultError as error:
        row = unreadable_row(place, None, str(error))
    return row | {"run_id": str(folder)}


def _findings(row: Row, findings: Sequence[Row]) -> tuple[RunFinding, ...]:
    return tuple(sorted(_own(row, findings), key=lambda finding: _WORST_FIRST.index(finding.outcome)))


def _own(row: Row, findings: Sequence[Row]) -> Iterator[RunFinding]:
    if row["outcome"] != "measured":
        yield RunFinding("FAIL", row["stage"] or row["outcome"], row["reason"] or "it gives no reason")
    for finding in findings:
        if finding["run_id"] == row["run_id"]:
            yield RunFinding(finding["status"], finding["code"], finding["message"])
