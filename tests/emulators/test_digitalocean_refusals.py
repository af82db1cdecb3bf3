"""What the emulated account refuses, as the real one does: busy droplets, quotas, wrong images, tags spelled anew."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydo
import pytest
from azure.core.exceptions import HttpResponseError

from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock

BODY = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1"}
VOLUME = {"name": "nb-cache", "region": "atl1", "size_gigabytes": 100}
PENDING = "Droplet already has a pending event"


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock")


@pytest.fixture
def cloud(clock: VirtualClock) -> Iterator[Emulator]:
    with Emulator(clock) as emulator:
        yield emulator


@pytest.fixture
def client(cloud: Emulator) -> Any:
    return pydo.Client(cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), retry_total=0)


def test_a_droplet_is_locked_until_it_is_active(client: Any, clock: VirtualClock) -> None:
    made = client.droplets.create(body=BODY)["droplet"]
    young = client.droplets.get(made["id"])["droplet"]
    clock.sleep(60)
    grown = client.droplets.get(made["id"])["droplet"]

    assert [(one["status"], one["locked"]) for one in (made, young, grown)] == [
        ("new", False),
        ("new", True),
        ("active", False),
    ]


def test_a_locked_droplet_takes_no_action_no_volume_and_no_delete(client: Any, clock: VirtualClock) -> None:
    volume = client.volumes.create(body=VOLUME)["volume"]["id"]
    droplet = client.droplets.create(body=BODY)["droplet"]["id"]
    attach = {"type": "attach", "droplet_id": droplet, "region": "atl1"}
    calls: list[Callable[[], Any]] = [
        lambda: client.droplet_actions.post(droplet, body={"type": "power_off"}),
        lambda: client.droplet_actions.post(droplet, body={"type": "snapshot", "name": "nb-golden"}),
        lambda: client.volume_actions.post_by_id(volume, body=attach),
        lambda: client.droplets.destroy(droplet),
    ]
    for call in calls:
        with pytest.raises(HttpResponseError, match=PENDING):
            call()

    clock.sleep(60)

    assert client.volume_actions.post_by_id(volume, body=attach)["action"]["status"] == "in-progress"


def test_a_volume_that_is_being_attached_goes_nowhere_else(client: Any, clock: VirtualClock) -> None:
    volume = client.volumes.create(body=VOLUME)["volume"]["id"]
    first, second = (client.droplets.create(body={**BODY, "name": f"nb-{n}"})["droplet"]["id"] for n in (1, 2))
    clock.sleep(60)
    client.volume_actions.post_by_id(volume, body={"type": "attach", "droplet_id": first, "region": "atl1"})

    with pytest.raises(HttpResponseError, match="pending event"):
        client.volume_actions.post_by_id(volume, body={"type": "attach", "droplet_id": second, "region": "atl1"})
    with pytest.raises(HttpResponseError, match="pending event") as refused:
        client.volumes.delete(volume)

    assert refused.value.status_code == 409


@pytest.mark.parametrize(("limit", "value"), [("volume_limit", 1), ("volume_gib_limit", 150)])
def test_an_account_has_a_quota_of_volumes(client: Any, cloud: Emulator, limit: str, value: int) -> None:
    setattr(cloud.behaviour, limit, value)
    client.volumes.create(body=VOLUME)

    with pytest.raises(HttpResponseError, match="capacity limit exceeded") as refused:
        client.volumes.create(body={**VOLUME, "name": "nb-second"})

    assert refused.value.status_code == 403


def test_a_region_without_storage_makes_no_volume_and_says_so_in_its_features(client: Any) -> None:
    features = {one["slug"]: one["features"] for one in client.regions.list(per_page=200)["regions"]}

    with pytest.raises(HttpResponseError, match="Storage is not supported for this region") as refused:
        client.volumes.create(body={**VOLUME, "region": "mem1"})

    assert refused.value.status_code == 422
    assert ("storage" in features["atl1"], "storage" in features["mem1"]) == (True, False)


@pytest.mark.parametrize(
    ("size", "region", "image", "is_taken"),
    [
        ("gpu-h100x1-80gb", "tor1", "gpu-amd-base", False),
        ("gpu-h100x1-80gb", "tor1", "gpu-h100x1-base", True),
        ("gpu-mi300x1-192gb", "atl1", "gpu-h100x1-base", False),
        ("gpu-mi300x1-192gb", "atl1", "ubuntu-24-04-x64", True),
    ],
)
def test_an_image_with_another_vendor_s_driver_boots_on_no_gpu(
    client: Any, cloud: Emulator, size: str, region: str, image: str, is_taken: bool
) -> None:
    body = {**BODY, "size": size, "region": region, "image": image}
    if is_taken:
        client.droplets.create(body=body)
    else:
        with pytest.raises(HttpResponseError, match="image you specified cannot be used"):
            client.droplets.create(body=body)

    assert len(cloud.living()) == is_taken


def test_a_snapshot_keeps_the_vendor_of_its_machine(client: Any, clock: VirtualClock, cloud: Emulator) -> None:
    droplet = client.droplets.create(body=BODY)["droplet"]["id"]
    clock.sleep(60)
    client.droplet_actions.post(droplet, body={"type": "snapshot", "name": "nb-golden"})
    clock.sleep(3600)
    (snapshot,) = client.images.list(private=True)["images"]
    cloud.sell("gpu-h100x1-80gb", regions=("atl1",))

    with pytest.raises(HttpResponseError, match="image you specified cannot be used"):
        client.droplets.create(body={**BODY, "name": "nb-2", "size": "gpu-h100x1-80gb", "image": snapshot["id"]})


def test_a_tag_keeps_the_spelling_of_its_first_use(client: Any, clock: VirtualClock) -> None:
    client.tags.create(body={"name": "NB"})
    droplet = client.droplets.create(body={**BODY, "tags": ["nb", "nb-run:a", "Nb-Run:A"]})["droplet"]["id"]
    again = client.tags.create(body={"name": "nB"})["tag"]["name"]
    clock.sleep(60)

    assert again == "NB"
    assert client.droplets.get(droplet)["droplet"]["tags"] == ["NB", "nb-run:a"]
    assert [one["name"] for one in client.tags.list()["tags"]] == ["NB", "nb-run:a"]
    assert client.tags.get("nb")["id"] == "not_found"
    assert client.droplets.list(tag_name="nb")["droplets"] == []
