"""The second method of the 70B report in its local shape, with the truth server in the engine's place."""

import json
from pathlib import Path

import pytest

from tests.flows.conftest import NightFixture, run_nightly

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("nights_without_prefect")]
SUITE = Path(__file__).parents[2] / "suites" / "llama-3.3-70b-mi300x-concurrency.toml"


def test_every_level_of_both_lengths_is_measured_and_reported(house: NightFixture) -> None:
    night = run_nightly(house, suite=SUITE).night

    reported = json.loads(house.call("report", night, "--suite", str(SUITE), "--format", "json").stdout)
    tables = {table["title"]: table["rows"] for table in reported["tables"]}
    levels = tables["Each level"]
    assert len(levels) == 2 * 6
    assert [row["scenario"] for row in levels if row["verdict"] in {"failed", "not-run"}] == []
    pivot = tables["Output tokens per second by output length and concurrency"]
    assert [row["osl"] for row in pivot] == [128, 1024]
    assert house.leftovers() == []
