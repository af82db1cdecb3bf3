"""Today's code loads a run folder of an earlier commit as that commit did."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bench.record import RunRecord
from warehouse.lake.lake import partition
from warehouse.load import load_night
from warehouse.views.tables import PART

NIGHT = "2026-03-01"
OLDER = Path(__file__).parents[1] / "data" / "night-of-method-4"
EXPECTED = json.loads((OLDER / "expected.json").read_text())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("older")
    shutil.copytree(OLDER / "runs", data / "runs")
    assert load_night(data, NIGHT).warnings == ()
    return data / "lake"


def _rows(lake: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(partition(lake, table, NIGHT) / PART, partitioning=None).to_pylist()
    return rows


def test_every_value_of_an_older_run_is_what_it_was(lake: Path) -> None:
    (row,) = _rows(lake, "measurements")
    found = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}

    assert {name: found[name] for name in EXPECTED["measurement"]} == EXPECTED["measurement"]


def test_the_verdict_and_findings_of_an_older_run_are_what_they_were(lake: Path) -> None:
    (row,) = _rows(lake, "measurements")
    statuses = {finding["code"]: finding["status"] for finding in _rows(lake, "findings")}

    assert row["verdict"] == "suspect"
    assert {code: statuses[code] for code in EXPECTED["findings"]} == EXPECTED["findings"]


def test_an_older_run_keeps_its_scenario_id() -> None:
    (record_file,) = OLDER.glob("runs/*/*/0/record.json")
    record = RunRecord.model_validate_json(record_file.read_bytes())

    assert record.lineage.method_version == 4
    assert record.asked.scenario_id == record.scenario_id == record_file.parents[1].name == "f1ef3856ef417887"
    assert record.asked.server_id == record.server_id
