"""Row 29: a golden image is transferred to the suite's regions, and a stuck transfer delays nothing."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bench.errors import CloudDeniedError
from bench.machine.names import ImageName
from infra.clouds.cloud import Snapshot
from infra.images.golden_image import delete_old_images, find_image
from infra.images.replicate import replicate_image
from tests.infra.rented import Rig

ACTIONS = r"/v2/images/\d+/actions"
PATIENCE_S = 7200.0


@pytest.fixture
def image(rig: Rig) -> Iterator[Snapshot]:
    rig.emulator.plant_snapshot(str(ImageName("0af3", rig.clock.now() + timedelta(days=30))), foreign=False)
    yield found(rig)
    delete_old_images(rig.cloud, keep=0)


def found(rig: Rig) -> Snapshot:
    image = find_image(rig.cloud, rig.clock, "0af3")
    assert image is not None
    return image


def spread(rig: Rig, image: Snapshot, *regions: str) -> tuple[str, ...]:
    cloud, clock, say = rig.cloud, rig.clock, rig.said.append
    return replicate_image(cloud, clock, image, regions, patience_s=PATIENCE_S, say=say).regions


def asked(rig: Rig) -> int:
    return len([one for one in rig.emulator.requests("POST") if "/v2/images/" in one.path])


def names(rig: Rig) -> list[str]:
    return [one.name for one in rig.emulator.state.images.values() if one.name.startswith("nb-")]


def test_a_night_boots_the_image_in_every_region_it_has_reached(rig: Rig, image: Snapshot) -> None:
    assert spread(rig, image, "atl1", "tor1", "nyc2") == ("atl1", "tor1", "nyc2")

    lease = rig.take(regions=("tor1",), golden=found(rig), image="gpu-amd-base")

    (droplet,) = rig.emulator.living("nb")
    assert (droplet.region, str(droplet.image.image_id), lease.image) == ("tor1", image.snapshot_id, image.snapshot_id)
    rig.release_lease(lease)


def test_an_image_in_every_region_is_not_transferred_again(rig: Rig, image: Snapshot) -> None:
    spread(rig, image, "tor1")

    assert spread(rig, found(rig), "atl1", "tor1") == ("atl1", "tor1")
    assert asked(rig) == 1


@pytest.mark.parametrize("phase", ["before", "close", "after", "close_after", "silence_after", "garbage"])
def test_row_29_a_lost_reply_starts_no_second_transfer(rig: Rig, image: Snapshot, phase: str) -> None:
    rig.emulator.fault("POST", ACTIONS, phase=phase)

    assert spread(rig, image, "tor1") == ("atl1", "tor1")

    assert asked(rig) == (2 if phase in ("before", "close") else 1)


@pytest.mark.parametrize("leaves_copies", [False, True], ids=["nothing left", "a copy left"])
def test_row_29_a_failed_transfer_is_reported_and_its_copies_are_deleted(
    rig: Rig, image: Snapshot, leaves_copies: bool
) -> None:
    rig.emulator.behaviour.leaves_copies = leaves_copies
    rig.emulator.behaviour.action_fates["transfer"].append("errored")

    assert spread(rig, image, "tor1", "nyc2") == ("atl1", "nyc2")

    assert [words for words in rig.said if "the cloud failed to transfer image" in words and "to tor1" in words]
    assert names(rig) == [image.name]
    assert found(rig).snapshot_id == image.snapshot_id


def test_row_29_a_stuck_transfer_is_waited_for_until_the_timeout(rig: Rig, image: Snapshot) -> None:
    rig.emulator.behaviour.action_fates["transfer"].append("stuck")
    began = rig.clock.now()

    assert spread(rig, image, "tor1", "nyc2") == ("atl1", "nyc2")

    assert (rig.clock.now() - began).total_seconds() < PATIENCE_S + 60
    assert rig.said[-1].endswith("after 120 minutes: nights there install the software until it is")
    lease = rig.take(regions=("tor1",), golden=found(rig), image="gpu-amd-base")
    assert lease.image == "gpu-amd-base"
    rig.release_lease(lease)


def test_row_29_a_running_transfer_is_not_requested_again(rig: Rig, image: Snapshot) -> None:
    rig.emulator.behaviour.action_fates["transfer"].append("stuck")
    spread(rig, image, "tor1")

    spread(rig, image, "tor1")

    assert asked(rig) == 1


def test_an_unknown_region_is_reported_and_the_others_are_reached(rig: Rig, image: Snapshot) -> None:
    assert spread(rig, image, "moon1", "tor1") == ("atl1", "tor1")

    assert any("cannot be transferred to moon1" in words for words in rig.said)


def test_a_view_that_fails_for_a_while_is_waited_out(rig: Rig, image: Snapshot) -> None:
    rig.emulator.fault("GET", "/v2/snapshots", phase="before", times=20)
    rig.emulator.fault("GET", ACTIONS, phase="before", times=20)

    assert spread(rig, image, "tor1") == ("atl1", "tor1")


def test_a_bare_action_is_a_valid_reply(rig: Rig, image: Snapshot) -> None:
    bare = {"id": 1, "status": "in-progress", "type": "transfer"}
    rig.emulator.fault("POST", ACTIONS, phase="after", status=201, body=bare)
    began = rig.clock.now()

    rig.cloud.transfer(image, "tor1")

    assert (rig.clock.now() - began).total_seconds() < 5


def test_a_token_that_may_not_transfer_images_fails(rig: Rig, image: Snapshot) -> None:
    cloud = rig.cloud_with(rig.emulator.add_token("image:read", "snapshot:read"))

    with pytest.raises(CloudDeniedError, match="lacks the scope image:update"):
        replicate_image(cloud, rig.clock, image, ["tor1"], patience_s=PATIENCE_S, say=rig.said.append)
