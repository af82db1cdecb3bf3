"""Keys, images, snapshots, volumes, tags, projects: the rest of the emulated account, by the real clients."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digitalocean
import pydo
import pytest
from azure.core.exceptions import HttpResponseError

from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEQXn8Sgy2Hd0lZEBcTpFCBUGuTdNaAXWXVMOMGIsSNh someone"


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


def droplet(client: Any, clock: VirtualClock, **more: Any) -> int:
    body = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1", **more}
    droplet_id = int(client.droplets.create(body=body)["droplet"]["id"])
    clock.sleep(60)
    return droplet_id


def test_a_key_is_found_by_id_and_by_fingerprint_and_only_once(client: Any, cloud: Emulator) -> None:
    key = client.ssh_keys.create(body={"name": "nb-1", "public_key": KEY})["ssh_key"]

    with pytest.raises(HttpResponseError, match="already in use"):
        client.ssh_keys.create(body={"name": "nb-2", "public_key": KEY})

    assert client.ssh_keys.get(key["id"])["ssh_key"] == client.ssh_keys.get(key["fingerprint"])["ssh_key"]
    with pytest.raises(AssertionError, match="SSH key nb-1 is left behind"):
        cloud.invariant()
    client.ssh_keys.delete(key["id"])
    cloud.invariant()


def test_sizes_and_regions_are_shown_with_prices_and_gpus(client: Any) -> None:
    sizes = {size["slug"]: size for size in client.sizes.list(per_page=200)["sizes"]}

    assert sizes["gpu-mi300x1-192gb"]["price_hourly"] == 2.59
    assert sizes["gpu-mi300x1-192gb"]["gpu_info"]["vram"] == {"amount": 192, "unit": "gib"}
    assert any(slug.endswith("-spot") for slug in sizes)
    assert {"atl1", "tor1"} <= {region["slug"] for region in client.regions.list(per_page=200)["regions"]}


def test_a_snapshot_takes_as_long_as_it_is_large_and_has_no_tags(
    client: Any, cloud: Emulator, clock: VirtualClock
) -> None:
    droplet_id = droplet(client, clock, tags=["nb"])
    cloud.behaviour.used_gb["nb-1-a1-x2"] = 50.0
    action = client.droplet_actions.post(droplet_id, body={"type": "snapshot", "name": "nb-golden"})["action"]
    clock.sleep(49 * 59)
    early = client.snapshots.list(resource_type="droplet")["snapshots"]
    clock.sleep(120)

    (snapshot,) = client.snapshots.list(resource_type="droplet")["snapshots"]

    assert early == []
    assert client.actions.get(action["id"])["action"]["status"] == "completed"
    assert (snapshot["name"], snapshot["tags"], snapshot["size_gigabytes"]) == ("nb-golden", [], 50.0)
    assert isinstance(snapshot["id"], str)
    assert client.droplets.list_snapshots(droplet_id)["snapshots"][0]["id"] == int(snapshot["id"])


def test_a_snapshot_outlives_its_droplet_boots_another_and_is_deleted_by_its_id(
    client: Any, cloud: Emulator, clock: VirtualClock
) -> None:
    droplet_id = droplet(client, clock)
    client.droplet_actions.post(droplet_id, body={"type": "snapshot", "name": "nb-golden"})
    clock.sleep(3600)
    client.droplets.destroy(droplet_id)
    (snapshot,) = client.images.list(private=True)["images"]

    second = droplet(client, clock, image=snapshot["id"], name="nb-2-a1-x2")

    assert client.droplets.get(second)["droplet"]["image"]["name"] == "nb-golden"
    client.droplets.destroy(second)
    with pytest.raises(AssertionError, match="nb-golden goes on billing"):
        cloud.invariant()
    cloud.invariant(kept=["nb-golden"])
    client.snapshots.delete(str(snapshot["id"]))
    cloud.invariant()


def test_a_base_image_is_no_snapshot(client: Any) -> None:
    image = client.images.get("gpu-amd-base")["image"]

    assert client.snapshots.delete(str(image["id"]))["message"] == "the resource is not a snapshot"


def test_a_snapshot_can_fail_or_hang_and_is_lost_with_its_droplet(
    client: Any, cloud: Emulator, clock: VirtualClock
) -> None:
    droplet_id = droplet(client, clock)
    cloud.behaviour.action_fates["snapshot"].extend(["errored", "stuck"])
    heard = []
    for _ in range(2):
        action = client.droplet_actions.post(droplet_id, body={"type": "snapshot", "name": "nb-golden"})["action"]
        clock.sleep(3600)
        heard.append(client.actions.get(action["id"])["action"]["status"])

    client.droplets.destroy(droplet_id)

    assert heard == ["errored", "in-progress"]
    assert client.snapshots.list()["snapshots"] == []
    cloud.invariant()


def test_a_snapshot_is_moved_to_another_region(client: Any, cloud: Emulator, clock: VirtualClock) -> None:
    image = cloud.plant_snapshot("nb-golden", foreign=False)
    client.image_actions.post(image.image_id, body={"type": "transfer", "region": "tor1"})
    clock.sleep(3600)

    assert client.images.get(image.image_id)["image"]["regions"] == ["atl1", "tor1"]


def test_a_volume_survives_its_droplet_and_goes_on_billing(client: Any, cloud: Emulator, clock: VirtualClock) -> None:
    body = {"name": "nb-cache", "region": "atl1", "size_gigabytes": 160, "filesystem_type": "ext4"}
    volume_id = client.volumes.create(body=body)["volume"]["id"]
    droplet_id = droplet(client, clock, volumes=[volume_id])
    attached = client.volumes.get(volume_id)["volume"]["droplet_ids"]

    client.droplets.destroy(droplet_id)

    assert attached == [droplet_id]
    assert client.volumes.get(volume_id)["volume"]["droplet_ids"] == []
    with pytest.raises(AssertionError, match=r"volume .* goes on billing"):
        cloud.invariant()
    clock.sleep(3600)
    client.volumes.delete(volume_id)
    cloud.invariant()
    assert cloud.usd("nb-cache") == pytest.approx(160 * 0.10 / 672 * 3660 / 3600, rel=0.01)


def test_an_attached_volume_cannot_be_deleted(client: Any, clock: VirtualClock) -> None:
    volume = client.volumes.create(body={"name": "nb-cache", "region": "atl1", "size_gigabytes": 10})["volume"]
    droplet_id = droplet(client, clock)
    client.volume_actions.post_by_id(volume["id"], body={"type": "attach", "droplet_id": droplet_id})
    clock.sleep(30)

    with pytest.raises(HttpResponseError) as caught:
        client.volumes.delete(volume["id"])

    assert caught.value.status_code == 409
    client.volume_actions.post_by_id(volume["id"], body={"type": "detach", "droplet_id": droplet_id})
    clock.sleep(30)
    client.volumes.delete(volume["id"])


def volume_in(client: Any, region: str = "atl1", name: str = "nb-cache", **more: Any) -> str:
    body = {"name": name, "region": region, "size_gigabytes": 10, **more}
    return str(client.volumes.create(body=body)["volume"]["id"])


def attach(client: Any, volume_id: str, droplet_id: int, **more: Any) -> Any:
    body = {"type": "attach", "droplet_id": droplet_id, **more}
    return client.volume_actions.post_by_id(volume_id, body=body)["action"]


def test_a_volume_is_attached_after_a_while_with_its_tags(client: Any, clock: VirtualClock) -> None:
    volume_id, droplet_id = volume_in(client), droplet(client, clock)
    action = attach(client, volume_id, droplet_id, tags=["nb-used:1"])
    early = client.volumes.get(volume_id)["volume"]["droplet_ids"]
    clock.sleep(30)

    shown = client.volumes.get(volume_id)["volume"]

    assert (early, shown["droplet_ids"], shown["tags"]) == ([], [droplet_id], ["nb-used:1"])
    (listed,) = client.volume_actions.list(volume_id)["actions"]
    assert (listed["id"], listed["status"], listed["resource_type"]) == (action["id"], "completed", "volume")
    assert client.volume_actions.get(volume_id, action["id"])["action"] == listed
    assert client.droplets.get(droplet_id)["droplet"]["volume_ids"] == [volume_id]


@pytest.mark.parametrize(
    ("region", "many", "said"),
    [("tor1", 0, "must be in the same region"), ("atl1", 15, "as many volumes as it may have")],
)
def test_a_volume_goes_to_a_droplet_of_its_region_that_has_room(
    client: Any, cloud: Emulator, clock: VirtualClock, region: str, many: int, said: str
) -> None:
    droplet_id = droplet(client, clock)
    for number in range(many):
        cloud.plant_volume(f"disk-{number}").droplet_id = droplet_id

    with pytest.raises(HttpResponseError, match=said):
        attach(client, volume_in(client, region), droplet_id)


def test_a_volume_has_one_droplet_and_a_droplet_one_event(client: Any, clock: VirtualClock) -> None:
    first, second = droplet(client, clock), droplet(client, clock, name="nb-2-a1-x2")
    one, other = volume_in(client), volume_in(client, name="nb-more")
    attach(client, one, first)

    with pytest.raises(HttpResponseError, match="already has a pending event"):
        attach(client, other, first)
    clock.sleep(30)
    with pytest.raises(HttpResponseError, match="already attached"):
        attach(client, one, second)


def test_what_does_not_exist_is_attached_to_nothing(client: Any, clock: VirtualClock) -> None:
    volume_id, droplet_id = volume_in(client), droplet(client, clock)
    body = {"type": "attach", "droplet_id": droplet_id}

    assert client.volume_actions.post_by_id(volume_id, body={**body, "droplet_id": 7})["id"] == "not_found"
    client.volumes.delete(volume_id)
    assert client.volume_actions.post_by_id(volume_id, body=body)["id"] == "not_found"


@pytest.mark.parametrize(("fate", "status"), [("errored", "errored"), ("stuck", "in-progress")])
def test_attaching_can_fail_or_hang(client: Any, cloud: Emulator, clock: VirtualClock, fate: str, status: str) -> None:
    cloud.behaviour.action_fates["attach_volume"].append(fate)
    volume_id, droplet_id = volume_in(client), droplet(client, clock)

    action = attach(client, volume_id, droplet_id)
    clock.sleep(3600)

    assert client.volume_actions.get(volume_id, action["id"])["action"]["status"] == status
    assert client.volumes.get(volume_id)["volume"]["droplet_ids"] == []


def test_a_volumes_name_is_one_in_its_region(client: Any) -> None:
    volume_in(client)

    with pytest.raises(HttpResponseError) as caught:
        volume_in(client)

    assert caught.value.status_code == 409
    assert volume_in(client, "tor1")


@pytest.mark.parametrize("size_gib", [5, 10, 16385])
def test_a_volume_only_grows_and_up_to_a_limit(client: Any, size_gib: int) -> None:
    volume_id = volume_in(client)

    with pytest.raises(HttpResponseError):
        client.volume_actions.post_by_id(volume_id, body={"type": "resize", "size_gigabytes": size_gib})

    client.volume_actions.post_by_id(volume_id, body={"type": "resize", "size_gigabytes": 20})
    assert client.volumes.get(volume_id)["volume"]["size_gigabytes"] == 20


@pytest.mark.parametrize("size_gib", [0, 16385])
def test_a_volume_of_no_possible_size_is_an_error_in_a_dict(client: Any, size_gib: int) -> None:
    body = {"name": "nb-cache", "region": "atl1", "size_gigabytes": size_gib}

    assert client.volumes.create(body=body)["id"] == "bad_request"


def test_a_transfer_that_errors_may_leave_a_copy(client: Any, cloud: Emulator, clock: VirtualClock) -> None:
    image = cloud.plant_snapshot("nb-golden", foreign=False)
    cloud.behaviour.action_fates["transfer"].append("errored")
    cloud.behaviour.leaves_copies = True

    client.image_actions.post(image.image_id, body={"type": "transfer", "region": "tor1"})
    clock.sleep(3600)

    (action,) = client.image_actions.list(image.image_id)["actions"]
    assert (action["status"], action["type"], action["region_slug"]) == ("errored", "transfer", "tor1")
    shown = client.snapshots.list(resource_type="droplet")["snapshots"]
    assert sorted((one["name"], one["regions"]) for one in shown) == [("nb-golden", ["atl1"]), ("nb-golden", ["tor1"])]


def test_a_wrong_volume_is_an_error_in_a_dict(client: Any) -> None:
    answer = client.volumes.create(body={"name": "UPPER", "region": "atl1", "size_gigabytes": 10})

    assert answer["id"] == "bad_request"


def test_what_belongs_to_a_droplet_is_shown_and_destroyed_selectively(
    client: Any, cloud: Emulator, clock: VirtualClock
) -> None:
    volume = client.volumes.create(body={"name": "nb-cache", "region": "atl1", "size_gigabytes": 100})["volume"]
    droplet_id = droplet(client, clock, volumes=[volume["id"]])
    client.droplet_actions.post(droplet_id, body={"type": "snapshot", "name": "nb-golden"})
    clock.sleep(3600)

    shown = client.droplets.list_associated_resources(droplet_id)
    client.droplets.destroy_with_associated_resources_selective(droplet_id, body={"volumes": [volume["id"]]})

    assert (shown["volumes"][0]["cost"], shown["snapshots"][0]["name"]) == ("10.00", "nb-golden")
    status = client.droplets.get_destroy_associated_resources_status(droplet_id)
    assert status["resources"]["volumes"][0]["id"] == volume["id"]
    cloud.invariant(kept=["nb-golden"])


def test_dangerous_takes_the_golden_snapshot_too(client: Any, clock: VirtualClock) -> None:
    droplet_id = droplet(client, clock)
    client.droplet_actions.post(droplet_id, body={"type": "snapshot", "name": "nb-golden"})
    clock.sleep(3600)

    client.droplets.destroy_with_associated_resources_dangerous(droplet_id, x_dangerous=True)

    assert client.snapshots.list()["snapshots"] == []


def test_a_tag_is_put_on_a_snapshot_afterwards(client: Any, cloud: Emulator) -> None:
    image = cloud.plant_snapshot("nb-golden", foreign=False)
    client.tags.create(body={"name": "nb"})
    resources = {"resources": [{"resource_id": str(image.image_id), "resource_type": "image"}]}

    client.tags.assign_resources("nb", body=resources)

    assert [one["name"] for one in client.images.list(tag_name="nb")["images"]] == ["nb-golden"]
    assert client.tags.get("nb")["tag"]["resources"]["images"]["count"] == 1
    client.tags.unassign_resources("nb", body=resources)
    assert client.snapshots.get(str(image.image_id))["snapshot"]["tags"] == []


def test_a_droplet_is_assigned_to_a_project(client: Any, clock: VirtualClock) -> None:
    droplet_id = droplet(client, clock)
    project = client.projects.list()["projects"][0]

    answer = client.projects.assign_resources(project["id"], body={"resources": [f"do:droplet:{droplet_id}"]})

    assert answer["resources"][0]["status"] == "assigned"


def test_the_balance_knows_only_days(client: Any, clock: VirtualClock) -> None:
    droplet(client, clock)

    assert client.balance.get()["month_to_date_usage"] == "0.00"


def test_python_digitalocean_drives_it_with_its_trailing_slashes(clock: VirtualClock) -> None:
    with Emulator(clock, tls=False) as cloud:
        machine = digitalocean.Droplet(
            token=cloud.token,
            name="nb-pd",
            region="nyc3",
            image="ubuntu-24-04-x64",
            size_slug="s-1vcpu-1gb",
            tags=["nb"],
        )
        machine.end_point = cloud.url + "/v2/"

        machine.create()

        clock.sleep(60)
        assert machine.load().status == "active"
        assert machine.ip_address.startswith("198.18.")
        machine.destroy()
        tag = digitalocean.Tag(token=cloud.token, name="nb")
        tag.end_point = machine.end_point
        tag.delete()
        cloud.invariant()


def test_a_droplets_ids_are_numbers_and_grow(client: Any, clock: VirtualClock) -> None:
    ids = [droplet(client, clock, name=f"nb-{number}") for number in range(3)]

    assert all(later > earlier for earlier, later in itertools.pairwise(ids))
