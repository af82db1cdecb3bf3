from pathlib import Path

import pytest

from bench.errors import UsageError
from tests.warehouse.conftest import NIGHT
from warehouse.audit import AuditOptions, audit
from warehouse.lake.query import run_sql
from warehouse.load import LoadSummary


def test_run_folders_are_judged_as_a_load_judges_them(loaded: tuple[Path, LoadSummary]) -> None:
    data, _summary = loaded
    in_lake = dict(run_sql(data, "SELECT run_id, verdict FROM measurements WHERE outcome <> 'not-run'").rows)

    judged = audit([str(data / "runs" / NIGHT)], AuditOptions()).judged

    found = {str(Path(run.claim.lineage.file).relative_to(data / "runs")): run.verdict for run in judged}
    assert found == in_lake


def test_the_worst_finding_comes_first(loaded: tuple[Path, LoadSummary]) -> None:
    judged = audit([str(loaded[0])], AuditOptions()).judged

    suspect = next(run for run in judged if run.verdict == "suspect")
    assert suspect.findings[0].code == "failure_rate"
    failed = next(run for run in judged if run.verdict == "failed")
    assert [(f.status, f.code, f.message) for f in failed.findings] == [("FAIL", "server", "<b>out of memory</b>")]


def test_a_spoiled_folder_is_judged_failed(one_run: tuple[Path, Path]) -> None:
    (one_run[1] / "load" / "events.bin").unlink()

    judged = audit([str(one_run[1])], AuditOptions()).judged

    assert judged[0].verdict == "failed"
    assert "load/events.bin" in judged[0].findings[0].message


def test_a_folder_without_runs_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no run folder"):
        audit([str(tmp_path)], AuditOptions())
