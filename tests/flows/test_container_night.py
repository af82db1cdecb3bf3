"""Nights whose engine is in a container: beside a model from a hub, and with the real docker where its daemon runs."""

import os
from pathlib import Path

import pytest

from tests.emulators.hub import HubEmulator
from tests.emulators.registry import RegistryEmulator
from tests.flows.conftest import NightFixture, run_nightly
from tests.infra.docker import DIGEST, IMAGE, Docker
from tests.infra.models.tiny import copy_tiny_model
from tests.infra.real_docker import containers, docker, push_engine, require_daemon
from warehouse.lake.query import run_sql


def in_container(suite: str, image: str) -> str:
    return suite.replace('version = "0.32.0"', f'version = "0.32.0"\ninstall = "container"\nimage = "{image}"')


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
        house.suite.write_text(in_container(text, IMAGE))

        summary = run_nightly(house)

        assert set(summary.verdicts) <= {"accepted", "suspect"}
        rows = run_sql(house.data, "SELECT DISTINCT image_digest, model_revision FROM measurements").rows
        assert [tuple(row) for row in rows] == [(DIGEST, hub.sha)]
        assert docker.containers == []
        assert docker.calls.count(f"pull {IMAGE}") == 1
        assert house.leftovers() == []


@pytest.mark.matrix  # `make test` has it with the fake docker
@pytest.mark.usefixtures("nights_without_prefect")
def test_a_night_in_a_container_of_the_real_docker_leaves_none_running(house: NightFixture) -> None:
    require_daemon()
    with RegistryEmulator() as registry:
        image = push_engine(registry)
        house.suite.write_text(in_container(house.write_suite().read_text(), image))

        summary = run_nightly(house)
        docker("rmi", image)

    assert set(summary.verdicts) <= {"accepted", "suspect"}
    rows = run_sql(house.data, "SELECT DISTINCT image_digest, image FROM measurements").rows
    assert [tuple(row) for row in rows] == [(image.partition("@")[2], image)]
    assert containers() == []
    assert house.leftovers() == []
