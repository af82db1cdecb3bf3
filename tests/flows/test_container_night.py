"""A night whose model comes from a hub and whose engine is in a container: both side by side, and both recorded."""

import os
from pathlib import Path

import pytest

from tests.emulators.hub import HubEmulator
from tests.flows.conftest import NightFixture, run_nightly
from tests.infra.docker import DIGEST, IMAGE, Docker
from tests.infra.models.tiny import copy_tiny_model
from warehouse.lake.query import run_sql


@pytest.mark.usefixtures("nights_without_prefect")
def test_a_night_from_a_hub_and_an_image_says_which_they_were_and_leaves_neither_running(
    house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = Docker(tmp_path / "docker", tmp_path / "docker-bin")
    monkeypatch.setenv("PATH", f"{docker.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    copy_tiny_model(tmp_path / "repository")
    with HubEmulator(tmp_path / "repository") as hub:
        monkeypatch.setenv("NIGHTBENCH_HUB_ENDPOINT", hub.url)
        text = house.write_suite().read_text()
        text = text.replace("generated:tiny?seed=0", f"hf:org/small@{hub.sha}")
        text = text.replace('version = "0.32.0"', f'version = "0.32.0"\ninstall = "container"\nimage = "{IMAGE}"')
        house.suite.write_text(text)

        summary = run_nightly(house)

        assert set(summary.verdicts) <= {"accepted", "suspect"}
        rows = run_sql(house.data, "SELECT DISTINCT image_digest, model_revision FROM measurements").rows
        assert [tuple(row) for row in rows] == [(DIGEST, hub.sha)]
        assert docker.containers == []
        assert docker.calls.count(f"pull {IMAGE}") == 1
        assert house.leftovers() == []
