"""A night that traces a scenario after its measurements, which stay what they are."""

import json
from pathlib import Path

import pytest

from bench.engines.profile_record import ProfileRecord
from infra.storage import store, upload
from nights import files
from tests.flows.conftest import NightFixture, run_nightly

pytestmark = pytest.mark.usefixtures("calibrated", "nights_without_prefect")

PROFILE = '\n[profile]\nscenarios = ["{name}"]\nrequests = 2\n'


def records_of(house: NightFixture, night: str) -> dict[Path, ProfileRecord]:
    found = store.night_folder(house.data, night).glob("profile-*/0/record.json")
    return {path.parent: ProfileRecord.model_validate_json(path.read_bytes()) for path in found}


def test_a_scenario_is_traced_once_after_all_runs_and_kept_with_the_night(house: NightFixture) -> None:
    house.suite.write_text(house.suite.read_text() + PROFILE.format(name="two"))

    night = run_nightly(house).night

    ((folder, record),) = records_of(house, night).items()
    assert (record.scenario.name, record.requests, record.reason) == ("two", 2, None)
    runs = [json.loads(path.read_bytes()) for path in folder.parents[1].glob("[0-9a-f]*/*/record.json")]
    assert record.started_at.isoformat() > max(run["ended_at"] for run in runs).replace("Z", "+00:00")
    assert not any("profiler" in word for run in runs for word in run["server"]["argv"])
    assert {run["load"]["request_count"] for run in runs} == {None}
    name = str(folder.relative_to(store.night_folder(house.data, night)))
    assert name in upload.whole_runs(house.data, night)
    assert files.unknown_files(store.night_folder(house.data, night)) == []
    rows = json.loads(house.call("sql", "SELECT count(*) AS runs FROM measurements", "--json").stdout)
    assert rows == [{"runs": 2}]
    assert house.leftovers() == []


def test_a_scenario_that_no_suite_has_is_refused_with_the_line(house: NightFixture) -> None:
    house.suite.write_text(house.suite.read_text() + PROFILE.format(name="tow"))

    refused = house.call("plan", str(house.suite))

    assert refused.returncode == 2
    assert "profile.scenarios has 'tow', and the scenarios are one, two" in refused.stderr
