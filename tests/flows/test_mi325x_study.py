"""The suite of the MI325X study in its local shape, with the truth server in the engine's place."""

import json
from collections import Counter
from pathlib import Path

import pytest

from infra.storage import store
from tests.flows.conftest import NightFixture, run_nightly

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600), pytest.mark.usefixtures("nights_without_prefect")]
STUDY = Path(__file__).parents[2] / "suites" / "mi325x-study.toml"


def test_every_phase_of_every_model_is_measured_on_this_computer(house: NightFixture) -> None:
    night = run_nightly(house, suite=STUDY).night

    sql = (
        f"SELECT scenario, model, model_source, model_sha256, outcome, reason FROM measurements WHERE night = '{night}'"
    )
    found = json.loads(house.call("sql", sql, "--json").stdout)
    assert [row for row in found if row["outcome"] != "measured"] == []
    planned = store.read_night(house.data, night).runs
    assert {run.scenario.name for run in planned} <= {row["scenario"] for row in found}
    models = ["llama-3.1-405b", "deepseek-v3.2", "kimi-k2.5", "qwen3-vl-235b"]
    assert {row["model"]: row["model_source"] for row in found} == {
        f"tiny-{name}": f"generated:tiny?seed={seed}" for seed, name in enumerate(models)
    }
    assert (
        len({(row["model"], row["model_sha256"]) for row in found}) == len({row["model_sha256"] for row in found}) == 4
    )
    probes = Counter(row["scenario"].partition("@")[2] for row in found if row["scenario"].startswith("saturation"))
    assert len(probes) >= len(models)
    assert house.leftovers() == []
