"""Canaries and what a machine offered become the table `canary`, and findings about the runs of their lease."""

from pathlib import Path

import pytest

from bench.errors import UnreadableResultError
from bench.machine.canary import CanaryRecord
from bench.machine.canary_history import NIGHTS, EarlierCanary, floors_from
from bench.machine_nights import RefusedResults
from nights.durable import write_json
from nights.files import REFUSED
from tests.bench.machine.canaries import STARTED, record
from tests.warehouse.conftest import NIGHT
from tests.warehouse.folders import whole_night
from warehouse.lake.query import run_sql
from warehouse.load import load_night
from warehouse.rows.machine_rows import canary_rows, read_canary


def test_each_test_is_a_row_with_its_share_of_the_peak_and_of_the_floor() -> None:
    (row,) = canary_rows(NIGHT, record({"memory_copy": 3993.75}))

    assert (row["night"], row["lease_id"], row["position"], row["device"]) == (NIGHT, "lease-1", "before", 0)
    assert (row["value"], row["unit"], row["peak"], row["share_of_peak"]) == (3993.75, "GB/s", 5325.0, 0.75)
    assert (row["floor"], row["over_floor"], row["is_floor_verified"]) == (3195.0, 1.25, False)


def test_a_floor_of_earlier_nights_replaces_the_catalogues_and_names_their_number() -> None:
    of_nights = [EarlierCanary(f"2026-01-{at:02}", "MI300X", "memory_copy", 4200.0) for at in range(1, NIGHTS + 1)]
    judged = record({"memory_copy": 4200.0}).model_copy(update={"floors": floors_from(of_nights, ())})

    (row,) = canary_rows(NIGHT, CanaryRecord.model_validate_json(judged.model_dump_json()))

    assert (row["floor"], row["floor_night_count"], row["is_floor_verified"]) == (3360.0, NIGHTS, True)
    assert "floors" not in row


def test_a_cpu_has_values_and_no_peak() -> None:
    (row,) = canary_rows(NIGHT, record({"memory_copy": 12.0}).model_copy(update={"gpus": ()}))

    assert (row["value"], row["peak"], row["share_of_peak"], row["floor"]) == (12.0, None, None, None)


def test_a_canary_that_did_not_run_to_its_end_has_a_row_with_the_reason_beside_its_results() -> None:
    reason = "torch cannot be imported"

    *measured, last = canary_rows(NIGHT, record({"disk_read": 2.0}).model_copy(update={"reason": reason}))

    assert [(row["test"], row["reason"]) for row in measured] == [("disk_read", None)]
    assert (last["test"], last["value"], last["reason"]) == (None, None, reason)


def test_a_canary_that_did_not_start_is_one_row() -> None:
    rows = canary_rows(NIGHT, CanaryRecord.not_run("lease-1", "after", STARTED, "the machine is gone"))

    assert [(row["position"], row["test"], row["reason"]) for row in rows] == [("after", None, "the machine is gone")]


def test_a_file_that_is_no_canary_cannot_be_read() -> None:
    with pytest.raises(UnreadableResultError, match="the canary cannot be read"):
        read_canary(b"{}")


def test_a_night_on_a_machine_near_its_floor_that_offers_others_results_is_suspect_and_a_broken_file_only_a_warning(
    tmp_path: Path,
) -> None:
    whole_night(tmp_path)
    folder = tmp_path / "runs" / NIGHT / "canaries"
    (folder / "lease-1-before.json").write_text(record({"memory_copy": 3300.0}).model_dump_json())
    (folder / "lease-2-before.json").write_text("{")
    offered = RefusedResults(lease_id="lease-1", count=4, names=("a", "b", "c", "d"))
    write_json(tmp_path / "runs" / NIGHT / REFUSED.name.replace("<lease>", "lease-1"), offered.model_dump())

    summary = load_night(tmp_path, NIGHT)

    found = run_sql(tmp_path, "SELECT code, status, message FROM findings WHERE family = 'machine' ORDER BY code").rows
    assert [row[:2] for row in found] == [("canary_near_floor", "WARN"), ("foreign_results", "WARN")]
    assert found[1][2] == (
        "its machine offered 4 results that the plan did not give it; none was copied: 'a', 'b', 'c', …"
    )
    assert run_sql(tmp_path, "SELECT test, value FROM canary WHERE lease_id = 'lease-1'").rows == (
        ("memory_copy", 3300.0),
    )
    assert len([warning for warning in summary.warnings if "lease-2-before.json" in warning]) == 1
