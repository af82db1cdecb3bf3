from pathlib import Path

import pytest

from bench.errors import UsageError
from tests.warehouse.conftest import NIGHT
from warehouse.judge import judge_folders
from warehouse.load import LoadSummary
from warehouse.query import run_sql


def test_run_folders_are_judged_as_a_load_judges_them(loaded: tuple[Path, LoadSummary]) -> None:
    data, _summary = loaded
    in_lake = dict(run_sql(data, "SELECT run_id, verdict FROM measurements WHERE outcome <> 'not-run'").rows)

    judged = judge_folders([data / "runs" / NIGHT])

    assert {str(Path(run.file).relative_to(data / "runs")): run.verdict for run in judged} == in_lake


def test_the_worst_finding_comes_first(loaded: tuple[Path, LoadSummary]) -> None:
    judged = judge_folders([loaded[0]])

    suspect = next(run for run in judged if run.verdict == "suspect")
    assert suspect.findings[0].code == "failure_rate"
    failed = next(run for run in judged if run.verdict == "failed")
    assert [(f.outcome, f.code, f.message) for f in failed.findings] == [("FAIL", "server", "<b>out of memory</b>")]


def test_a_spoiled_folder_is_judged_failed(one_run: tuple[Path, Path]) -> None:
    (one_run[1] / "load" / "events.bin").unlink()

    judged = judge_folders([one_run[1]])

    assert judged[0].verdict == "failed"
    assert "load/events.bin" in judged[0].findings[0].message


def test_a_folder_without_runs_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run folder"):
        judge_folders([tmp_path])
