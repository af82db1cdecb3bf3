"""A night's own calibration: measured before its server comes up, kept, in every record, and used again on resuming."""

import json
import shutil
from pathlib import Path

import pytest

from bench.client_error.calibration import CalibrationTable
from bench.record import Calibration, RunRecord
from infra.loadgen.night_calibration import calibrate_night
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from infra.storage import store
from tests.flows.conftest import Ended, NightFixture, run_nightly
from warehouse.lake.query import run_sql

pytestmark = pytest.mark.usefixtures("nights_without_prefect")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


def night(house: NightFixture) -> Ended:
    return run_nightly(house)


def records(house: NightFixture) -> list[RunRecord]:
    return [RunRecord.model_validate_json(path.read_bytes()) for path in house.data.glob("runs/*/*/0/record.json")]


def calibrate(house: NightFixture) -> Calibration:
    """Calibrate for the newest night, or a new one of the house's suite."""
    names = store.nights(house.data)
    made = store.read_night(house.data, names[-1]) if names else make_night(house.suite, "local", poc=False)
    store.write_json(store.night_folder(house.data, made.night) / "night.json", made)
    return calibrate_night(house.data, made, Settings().cache, lambda _said: None)


@needs_compiler
def test_a_night_keeps_its_calibration_and_names_it_in_every_record(house: NightFixture) -> None:
    summary = night(house)

    path = store.calibration_file(house.data, summary.night)
    table = CalibrationTable.model_validate_json(path.read_bytes())
    assert {(p.streams, p.workers, p.stream_tok_per_s) for p in table.points} == {(2, 1, 400.0)}
    assert {record.calibration and record.calibration.file_sha256 for record in records(house)} == {store.sha256(path)}
    ids = run_sql(house.data, "SELECT DISTINCT calibration_id, not_calibrated FROM measurements").rows
    assert [tuple(row) for row in ids] == [(table.calibration_id, None)]


def test_a_night_without_a_compiler_goes_on_and_accepts_nothing(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "no-such-compiler")

    summary = night(house)

    assert summary.verdicts == {"suspect": 2}
    said = run_sql(
        house.data, "SELECT DISTINCT status, message FROM findings WHERE code = 'client_bound_envelope'"
    ).rows
    ((status, message),) = said
    assert (status, "not calibrated: no C compiler (cc) was found" in str(message)) == ("NOT-CHECKABLE", True)
    assert not store.calibration_file(house.data, summary.night).exists()


@needs_compiler
def test_a_night_taken_up_again_uses_the_calibration_it_has(house: NightFixture) -> None:
    first = calibrate(house)

    assert calibrate(house) == first
    assert first.calibration_id is not None


@needs_compiler
@pytest.mark.parametrize("changed", [{"hostname": "another"}, {"meter_version": "0.0.0"}])
def test_a_night_taken_up_on_another_host_or_with_another_client_is_calibrated_anew(
    house: NightFixture, changed: dict[str, str]
) -> None:
    first = calibrate(house)
    path = store.calibration_file(house.data, store.nights(house.data)[0])
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    again = calibrate(house)

    assert again.calibration_id != first.calibration_id
    assert (path.parent / f"calibration-{first.calibration_id}.json").exists()


def test_a_night_that_the_meter_does_not_drive_calibrates_nothing(house: NightFixture) -> None:
    house.suite.write_text(house.suite.read_text().replace("concurrency =", 'driver = "vllm-bench"\nconcurrency ='))

    found = calibrate(house)

    assert (found.calibration_id, found.reason) == (None, "no run of this night is driven by the meter")
