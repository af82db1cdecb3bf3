"""The emulated cloud, driven by the client that drives the real one: droplets, their lists, their bill."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydo
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock

GPU = "gpu-mi300x1-192gb"
CPU = "s-2vcpu-4gb"


@pytest.fixture
def clock(tmp_path: Path) -> VirtualClock:
    return VirtualClock(tmp_path / "clock")


@pytest.fixture
def cloud(clock: VirtualClock) -> Iterator[Emulator]:
    with Emulator(clock) as emulator:
        yield emulator


def client(cloud: Emulator, token: str | None = None) -> Any:
    return pydo.Client(
        token or cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), retry_total=0, read_timeout=60
    )


def lease_request(name: str = "nb-1-a1-x2", size: str = GPU, **more: Any) -> dict[str, Any]:
    return {"name": name, "size": size, "image": "gpu-amd-base", "region": "atl1", **more}


def create(cloud: Emulator, **fields: Any) -> int:
    answer = client(cloud).droplets.create(body=lease_request(**fields))
    return int(answer["droplet"]["id"])


def names(answer: dict[str, Any]) -> list[str]:
    return [droplet["name"] for droplet in answer["droplets"]]


def refused(cloud: Emulator, **fields: Any) -> HttpResponseError:
    with pytest.raises(HttpResponseError) as caught:
        client(cloud).droplets.create(body=lease_request(**fields))
    return caught.value


def test_a_create_is_accepted_new_and_becomes_active_with_an_address_after_a_while(
    cloud: Emulator, clock: VirtualClock
) -> None:
    answer = client(cloud).droplets.create(body=lease_request(tags=["nb"]))
    assert (answer["droplet"]["status"], answer["droplet"]["networks"]["v4"]) == ("new", [])

    clock.sleep(60)

    droplet = client(cloud).droplets.get(answer["droplet"]["id"])["droplet"]
    action = client(cloud).actions.get(answer["links"]["actions"][0]["id"])["action"]
    assert droplet["status"] == "active"
    assert {one["type"] for one in droplet["networks"]["v4"]} == {"public", "private"}
    assert action["status"] == "completed"


def test_the_plain_list_hides_gpu_droplets(cloud: Emulator) -> None:
    create(cloud, name="gpu")
    create(cloud, name="cpu", size=CPU)

    assert names(client(cloud).droplets.list()) == ["cpu"]
    assert names(client(cloud).droplets.list(type="gpus")) == ["gpu"]
    assert names(client(cloud).droplets.list(name="GPU", type="gpus")) == ["gpu"]
    assert names(client(cloud).droplets.list(name="gpu")) == []


def test_type_and_name_do_not_go_with_tag_name(cloud: Emulator) -> None:
    with pytest.raises(HttpResponseError):
        client(cloud).droplets.list(type="gpus", tag_name="nb")


def test_tags_come_late(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.lag["tags"] = 30.0
    create(cloud, tags=["nb"])

    early = names(client(cloud).droplets.list(tag_name="nb"))
    clock.sleep(31)

    assert (early, names(client(cloud).droplets.list(tag_name="nb"))) == ([], ["nb-1-a1-x2"])


@pytest.mark.parametrize("view", ["get", "list", "name_list", "tag_list"])
def test_each_view_lags_by_itself(cloud: Emulator, clock: VirtualClock, view: str) -> None:
    cloud.lag["tags"] = 0.0
    cloud.lag[view] = 30.0
    droplet_id = create(cloud, tags=["nb"])

    def views() -> set[str]:
        droplets = client(cloud).droplets
        found = {
            "get": "droplet" in droplets.get(droplet_id),
            "list": bool(names(droplets.list(type="gpus"))),
            "name_list": bool(names(droplets.list(type="gpus", name="nb-1-a1-x2"))),
            "tag_list": bool(names(droplets.list(tag_name="nb"))),
        }
        return {name for name, sees in found.items() if sees}

    early = views()
    clock.sleep(31)

    assert early == {"get", "list", "name_list", "tag_list"} - {view}
    assert views() == {"get", "list", "name_list", "tag_list"}


def test_a_deleted_droplet_may_be_listed_for_a_while(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud)
    clock.sleep(60)
    cloud.behaviour.gone_lag["list"] = 30.0
    client(cloud).droplets.destroy(droplet_id)

    late = names(client(cloud).droplets.list(type="gpus"))
    clock.sleep(31)

    assert (late, names(client(cloud).droplets.list(type="gpus"))) == (["nb-1-a1-x2"], [])


def test_a_missing_droplet_is_an_error_in_a_dict(cloud: Emulator) -> None:
    assert client(cloud).droplets.get(1)["id"] == "not_found"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": "gpu-no-such"}, "invalid size"),
        ({"image": "no-such"}, "invalid image"),
        ({"region": "mars1"}, "invalid region"),
        ({"region": "ams3"}, "Size is not available in this region."),
        ({"name": "no_underscore"}, "hostname characters"),
        ({"tags": ["no space"]}, "Tag name"),
        ({"ssh_keys": ["12:34"]}, "invalid key identifiers"),
        ({"user_data": "x" * 65537}, "64 KiB"),
        ({"size": "s-1vcpu-1gb"}, "larger disk"),
    ],
)
def test_a_wrong_create_is_refused_in_words(cloud: Emulator, fields: dict[str, Any], message: str) -> None:
    error = refused(cloud, **fields)

    assert error.status_code == 422
    assert message in error.message
    assert cloud.ledger() == []


def test_a_full_region_says_where_there_is_room(cloud: Emulator) -> None:
    cloud.capacity[GPU, "atl1"] = 0

    response: Any = refused(cloud).response

    answer = response.json()
    assert "temporarily unavailable" in answer["message"]
    assert answer["error_attributes"]["available_regions"] == ["tor1", "nyc2"]


def test_capacity_is_used_up_and_given_back(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.capacity[GPU, "atl1"] = 1
    droplet_id = create(cloud, name="first")
    refused(cloud, name="second")
    clock.sleep(60)

    client(cloud).droplets.destroy(droplet_id)

    assert create(cloud, name="third")


def test_available_without_regions_cannot_be_created(cloud: Emulator) -> None:
    cloud.sell(GPU, regions=())

    shown = next(size for size in client(cloud).sizes.list(per_page=200)["sizes"] if size["slug"] == GPU)

    assert (shown["available"], shown["regions"]) == (True, [])
    assert "Size is not available in this region." in refused(cloud).message


@pytest.mark.parametrize("limit", ["droplet_limit", "gpu_limit"])
def test_limits_are_refused_in_words(cloud: Emulator, limit: str) -> None:
    setattr(cloud.behaviour, limit, 0)

    assert "exceed your droplet limit" in refused(cloud).message


def test_a_droplet_that_cannot_be_placed_vanishes_without_a_bill(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.fate("vanishes")
    droplet_id = create(cloud)

    clock.sleep(10)

    assert client(cloud).droplets.get(droplet_id)["id"] == "not_found"
    assert names(client(cloud).droplets.list(type="gpus")) == []
    assert cloud.usd() == 0.0


def test_user_data_with_an_emoji_fails_after_the_202(cloud: Emulator, clock: VirtualClock) -> None:
    create(cloud, user_data="#cloud-config\n# \N{ROCKET}")

    clock.sleep(60)

    assert cloud.living() == []


def test_a_droplet_can_be_stuck_new_or_without_an_address(cloud: Emulator, clock: VirtualClock) -> None:
    cloud.fate("stuck", "no address", "errored")
    ids = [create(cloud, name=f"nb-{fate}") for fate in range(3)]
    clock.sleep(3600)

    shown = [client(cloud).droplets.get(droplet_id)["droplet"] for droplet_id in ids]

    assert [droplet["status"] for droplet in shown] == ["new", "active", "new"]
    assert [one["type"] for one in shown[1]["networks"]["v4"]] == ["private"]
    assert client(cloud).droplet_actions.list(ids[2])["actions"][0]["status"] == "errored"
    assert len([one for one in cloud.ledger() if one.ended is None]) == 3


def test_one_event_at_a_time(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud)
    clock.sleep(60)
    client(cloud).droplet_actions.post(droplet_id, body={"type": "power_off"})

    with pytest.raises(HttpResponseError, match="pending event"):
        client(cloud).droplet_actions.post(droplet_id, body={"type": "power_on"})

    assert client(cloud).droplets.get(droplet_id)["droplet"]["locked"] is True
    clock.sleep(30)
    droplet = client(cloud).droplets.get(droplet_id)["droplet"]
    assert (droplet["status"], droplet["locked"]) == ("off", False)


def test_a_powered_off_droplet_goes_on_billing(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud)
    clock.sleep(60)
    client(cloud).droplet_actions.post(droplet_id, body={"type": "power_off"})
    clock.sleep(7140)

    assert cloud.usd("nb") == pytest.approx(2 * 2.59, rel=0.001)
    with pytest.raises(AssertionError, match="goes on billing"):
        cloud.invariant()


def test_a_gpu_bills_by_the_second_above_its_minimum(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud)
    clock.sleep(60)
    client(cloud).droplets.destroy(droplet_id)
    clock.sleep(3600)

    assert cloud.usd() == pytest.approx(300 / 3600 * 2.59)
    cloud.invariant()


def test_two_droplets_of_one_name_are_a_breach(cloud: Emulator, clock: VirtualClock) -> None:
    ids = [create(cloud), create(cloud)]
    clock.sleep(200)
    for droplet_id in ids:
        client(cloud).droplets.destroy(droplet_id)

    with pytest.raises(AssertionError, match="side by side"):
        cloud.invariant()


def test_delete_by_tag_hits_foreign_droplets_too(cloud: Emulator) -> None:
    cloud.plant_droplet("theirs", tags=["nb"])

    client(cloud).droplets.destroy_by_tag(tag_name="nb")

    with pytest.raises(AssertionError, match="foreign theirs"):
        cloud.invariant()


def test_a_reclaimed_droplet_is_gone_without_a_word(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud, size="gpu-mi355x1-288gb-spot", region="mem1")
    cloud.reclaim(droplet_id, after_s=7200)
    clock.sleep(7300)

    assert client(cloud).droplets.get(droplet_id)["id"] == "not_found"
    assert cloud.usd() == pytest.approx(2 * 2.97, rel=0.001)


def test_lists_come_in_pages(cloud: Emulator) -> None:
    for number in range(5):
        create(cloud, name=f"nb-{number}")

    page = client(cloud).droplets.list(type="gpus", per_page=2, page=2)

    assert names(page) == ["nb-2", "nb-3"]
    assert page["meta"]["total"] == 5
    assert set(page["links"]["pages"]) == {"first", "prev", "next", "last"}
    assert "page=3" in page["links"]["pages"]["next"]


def test_several_droplets_at_once(cloud: Emulator) -> None:
    body = lease_request(names=["a", "b"])
    del body["name"]

    answer = client(cloud).droplets.create(body=body)

    assert names(answer) == ["a", "b"]


def test_a_wrong_token_is_refused(cloud: Emulator) -> None:
    with pytest.raises(ClientAuthenticationError):
        client(cloud, "dop_v1_wrong").droplets.list()


def test_a_token_may_do_only_what_its_scopes_say(cloud: Emulator, clock: VirtualClock) -> None:
    droplet_id = create(cloud)
    clock.sleep(60)
    token = cloud.add_token("droplet:read", "droplet:delete")

    with pytest.raises(HttpResponseError) as caught:
        client(cloud, token).account.get()

    assert caught.value.status_code == 403
    client(cloud, token).droplets.destroy(droplet_id)
    cloud.invariant()
