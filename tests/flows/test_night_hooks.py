"""What happens after a cancelled night: what it had measured is loaded, judged and reported."""

from pathlib import Path

import pytest

from flows.night_hooks import load_measured
from infra.settings import Settings
from tests.warehouse.folders import Shape, write_night, write_run
from warehouse.lake.query import run_sql

NIGHT = "2026-03-01T010000Z"

pytestmark = pytest.mark.usefixtures("nights_without_prefect")


def test_what_a_cancelled_night_measured_is_loaded_judged_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    night = write_night(tmp_path, NIGHT, {"chat": Shape(), "calm": Shape(tokens=16)})
    load_measured(Settings(), NIGHT)
    assert not (tmp_path / "lake").exists()  # it had measured nothing

    write_run(tmp_path, night, night.runs[0], Shape())
    load_measured(Settings(), NIGHT)

    outcomes = run_sql(tmp_path, "SELECT outcome, count(*) FROM measurements GROUP BY 1 ORDER BY 1").rows
    assert outcomes == (("measured", 1), ("not-run", len(night.runs) - 1))
    assert (tmp_path / "runs" / NIGHT / "judgement.json").exists()
    assert (tmp_path / "reports" / f"{NIGHT}.html").exists()
