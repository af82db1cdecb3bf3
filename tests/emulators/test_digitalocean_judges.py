"""Programs that nobody here wrote judge what the emulator says."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.emulators.digitalocean import Emulator, judge
from tests.emulators.digitalocean.replies import Reply, Request
from tests.emulators.virtual_clock import VirtualClock

BODY = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1"}
needs_description = pytest.mark.skipif(not judge.DESCRIPTION.exists(), reason="the API's description is not at hand")
PACKER = {
    "type": "digitalocean",
    "image": "gpu-amd-base",
    "region": "atl1",
    "size": "gpu-mi300x1-192gb",
    "communicator": "none",
    "snapshot_name": "nb-golden",
    "tags": ["run:abc"],
    "state_timeout": "60s",
}


@needs_description
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/droplets", {"droplets": [], "links": {}}),
        ("/v2/droplets", {"droplets": [{"id": 1}], "links": {}, "meta": {"total": 1}}),
        ("/v2/actions/1", {"action": {"id": 1, "status": "finished"}}),
        ("/v2/account", {"account": {"droplet_limit": "25"}}),
    ],
)
def test_the_description_refuses_a_wrong_answer(path: str, body: object) -> None:
    request = Request("GET", path, {}, {"authorization": "Bearer x"})

    assert judge.violations(request, Reply(200, body))


@needs_description
def test_the_description_refuses_a_wrong_request() -> None:
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    request = Request("POST", "/v2/droplets", {}, headers, json.dumps({"name": "nb"}).encode())

    assert judge.violations(request, Reply(202, {"droplets": [], "links": {}}))


@needs_description
def test_a_violation_fails_whoever_ran_the_emulator(tmp_path: Path) -> None:
    cloud = Emulator(VirtualClock(tmp_path / "clock")).__enter__()
    cloud.state.account["droplet_limit"] = "many"
    cloud.api.answer(Request("GET", "/v2/account", {}, {"authorization": f"Bearer {cloud.token}"}))

    with pytest.raises(AssertionError, match="against the API's description"):
        cloud.__exit__(None, None, None)


@pytest.mark.skipif(shutil.which("packer") is None, reason="packer is not installed")
def test_packer_builds_a_snapshot_and_leaves_nothing_else(tmp_path: Path) -> None:
    with Emulator(tls=False, speed=600) as cloud:
        template = {"builders": [PACKER | {"api_token": cloud.token, "api_url": cloud.url}]}
        (tmp_path / "t.json").write_text(json.dumps(template))

        built = subprocess.run(
            ["packer", "build", "t.json"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

        assert built.returncode == 0, built.stdout + built.stderr
        assert [image.name for image in cloud.state.images.values() if image.kind == "snapshot"] == ["nb-golden"]
        assert cloud.living() == []
        assert cloud.state.keys == {}
