"""Golden images: created once, found again, and deleted where something failed."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bench.errors import CloudError, LeaseError
from bench.machine.names import ImageName, VolumeName
from infra.images.golden_image import LIFETIME, delete_old_images, find_image, make_image
from infra.leases.offers import Choice
from infra.leases.volumes import VolumeContext, VolumeRequest, acquire_volume
from infra.ledger.lease import Lease
from infra.ledger.volumes import VolumeBook
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.infra.rented import KIND, ONE_DROPLET, Rig
from tests.pairs import thin_matrix
from tests.stepped_clock import STEPS_S, SteppedMidway

ACTIONS = ONE_DROPLET + "/actions"
PATIENCE_S = 2 * 3600.0


@pytest.fixture
def lease(rig: Rig) -> Iterator[Lease]:
    yield (lease := rig.take(minutes=240))
    rig.release_lease(lease)


def snapshot_names(rig: Rig) -> list[str]:
    return [image.name for image in rig.emulator.state.images.values() if image.name.startswith("nb-")]


def make(rig: Rig, lease: Lease, patience_s: float = PATIENCE_S) -> str:
    return make_image(rig.cloud, rig.clock, str(lease.machine_id), "0af3", patience_s=patience_s).name


def clean_up(rig: Rig) -> None:
    rig.emulator.settle()
    delete_old_images(rig.cloud, keep=0)


def test_an_image_is_created_once_and_found_again(rig: Rig, lease: Lease) -> None:
    name = make(rig, lease)

    assert snapshot_names(rig) == [name]
    assert make(rig, lease) == name
    parsed = ImageName.parse(name)
    assert parsed is not None
    assert parsed.is_whole
    assert parsed.expires_at is not None
    assert parsed.expires_at - rig.clock.now() > timedelta(days=29)
    clean_up(rig)


def test_an_image_is_seen_soon_after_it_is_complete(rig: Rig, lease: Lease) -> None:
    rig.emulator.state.behaviour = replace(
        rig.emulator.state.behaviour, delays=replace(rig.emulator.state.behaviour.delays, snapshot_s_per_gb=0.1)
    )
    began_s = rig.clock.monotonic()

    make(rig, lease)

    assert rig.clock.monotonic() - began_s < 30
    clean_up(rig)


def test_a_machine_boots_the_golden_image_where_it_is_and_the_suites_elsewhere(rig: Rig, lease: Lease) -> None:
    make(rig, lease)
    golden = find_image(rig.cloud, rig.clock, "0af3")

    here = rig.take(night="here", golden=golden)
    there = rig.take(night="there", golden=golden, regions=("tor1",), image="gpu-amd-base")

    assert golden is not None
    assert (here.image, there.image) == (golden.snapshot_id, "gpu-amd-base")
    booted = {one.name: str(one.image.image_id) for one in rig.emulator.living("nb")}
    assert booted[str(here.name)] == golden.snapshot_id
    assert booted[str(there.name)] != golden.snapshot_id
    clean_up(rig)


def test_an_alternative_with_another_vendors_gpus_boots_no_golden_image(rig: Rig, lease: Lease) -> None:
    make(rig, lease)
    golden = find_image(rig.cloud, rig.clock, "0af3")
    rig.emulator.sell("gpu-h100x1-80gb", regions=("atl1",))
    rig.emulator.capacity[KIND, "atl1"] = 0

    choices = (Choice(KIND), Choice("gpu-h100x1-80gb"))
    other = rig.take(night="other", choices=choices, golden=golden, golden_vendor="amd")

    assert (other.kind, other.image) == ("gpu-h100x1-80gb", None)
    clean_up(rig)


def test_an_image_of_other_content_is_not_used(rig: Rig, lease: Lease) -> None:
    make(rig, lease)

    assert find_image(rig.cloud, rig.clock, "beef") is None
    clean_up(rig)


def test_an_expired_image_is_not_found_and_is_deleted(rig: Rig, lease: Lease) -> None:
    make(rig, lease)
    rig.release_lease(lease)
    rig.clock.sleep(31 * 24 * 3600)

    assert find_image(rig.cloud, rig.clock, "0af3") is None
    rig.reap()
    assert snapshot_names(rig) == []


@pytest.mark.parametrize(
    "phase", thin_matrix(["before", "close", "after", "close_after", "silence_after", "garbage"], each=3)
)
def test_row_27_a_lost_reply_creates_no_second_image(rig: Rig, lease: Lease, phase: str) -> None:
    rig.emulator.fault("POST", ACTIONS, phase=phase)

    name = make(rig, lease)
    rig.clock.sleep(PATIENCE_S)
    rig.emulator.settle()

    assert snapshot_names(rig) == [name]
    clean_up(rig)


def test_an_image_whose_requests_are_all_lost_is_not_made_and_the_reason_says_what_to_do(
    rig: Rig, lease: Lease
) -> None:
    rig.emulator.fault("POST", ACTIONS, phase="before", times=FOR_EVER)

    with pytest.raises(CloudError, match=r"image nb-raw-.* could not be started .*: run nightbench prepare again"):
        make(rig, lease, patience_s=600.0)

    rig.emulator.api.plan.faults.clear()
    assert snapshot_names(rig) == []


@pytest.mark.parametrize("by_s", STEPS_S)
def test_an_image_and_a_volume_are_dated_by_the_clouds_clock(rig: Rig, lease: Lease, by_s: int) -> None:
    clock = SteppedMidway(rig.clock, by_s, at_sleep=0)
    cloud = rig.cloud_with(clock=clock)
    wanted = VolumeRequest("hf:org/model", 20, str(lease.machine_id), str(lease.region), lease.expires_at)

    image = make_image(cloud, clock, str(lease.machine_id), "0af3", patience_s=PATIENCE_S)
    volume = acquire_volume(VolumeContext(cloud, VolumeBook(rig.ledger.path, clock), clock), wanted, rig.said.append)

    names = ImageName.parse(image.name), VolumeName.parse(volume.name)
    ends = [name.expires_at for name in names if name is not None and name.expires_at is not None]
    off_s = [(end - rig.clock.now() - LIFETIME).total_seconds() for end in ends]
    assert [abs(seconds) < 3600.0 for seconds in off_s] == [True, True]
    assert find_image(cloud, clock, "0af3") == image
    rig.release_lease(lease)
    rig.clock.sleep(40 * 24 * 3600)  # then the volume is past its time, too
    clean_up(rig)


@pytest.mark.parametrize("fate", ["stuck", "errored"])
def test_row_28_a_stuck_image_never_delays_the_release(rig: Rig, lease: Lease, fate: str) -> None:
    rig.emulator.behaviour.action_fates["snapshot"].append(fate)
    began = rig.clock.now()

    with pytest.raises(LeaseError, match="run nightbench prepare again"):
        make(rig, lease, patience_s=1800.0)

    assert (rig.clock.now() - began).total_seconds() < 2000
    assert rig.release_lease(lease).state == "released"


def test_row_28_an_image_that_appears_after_the_timeout_is_deleted(rig: Rig, lease: Lease) -> None:
    rig.emulator.behaviour.late_snapshots = True

    with pytest.raises(LeaseError, match="was not complete after 10 minutes"):
        make(rig, lease, patience_s=600.0)
    rig.release_lease(lease)
    rig.clock.sleep(2 * 3600)
    rig.emulator.settle()

    assert [name.startswith("nb-raw-0af3") for name in snapshot_names(rig)] == [True]
    assert find_image(rig.cloud, rig.clock, "0af3") is None
    rig.reap()
    assert snapshot_names(rig) == []


def test_a_view_that_fails_for_a_while_is_waited_out(rig: Rig, lease: Lease) -> None:
    rig.emulator.fault("GET", "/v2/snapshots", phase="before", times=20, nth=2)

    name = make(rig, lease)

    assert snapshot_names(rig) == [name]
    clean_up(rig)


def test_old_images_are_deleted_and_foreign_ones_are_not(rig: Rig) -> None:
    rig.emulator.plant_snapshot("somebody-elses-image")
    far = rig.clock.now() + timedelta(days=9)
    for content in ("aa", "bb", "cc"):
        rig.emulator.plant_snapshot(str(ImageName(content, far)), foreign=False)
        rig.clock.sleep(60)

    gone = delete_old_images(rig.cloud, keep=1)

    assert gone == [str(ImageName(content, far)) for content in ("aa", "bb")]
    assert snapshot_names(rig) == [str(ImageName("cc", far))]
    clean_up(rig)


def test_an_old_image_that_is_needed_is_not_deleted(rig: Rig) -> None:
    far = rig.clock.now() + timedelta(days=9)
    names = [str(ImageName(content, far)) for content in ("aa", "bb", "cc")]
    for name in names:
        rig.emulator.plant_snapshot(name, foreign=False)
        rig.clock.sleep(60)

    gone = delete_old_images(rig.cloud, keep=1, needed=names[:1])

    assert (gone, snapshot_names(rig)) == ([names[1]], [names[0], names[2]])
    clean_up(rig)


def test_row_33_a_volume_of_a_lease_is_deleted_after_its_machine(rig: Rig, lease: Lease) -> None:
    rig.emulator.plant_volume(str(lease.name), foreign=False)
    rig.emulator.plant_volume("somebody-elses-volume")
    body = {"id": "conflict", "message": "The volume is still attached."}
    rig.emulator.fault("DELETE", r"/v2/volumes/[^/]+", phase="status", status=409, body=body, times=2)

    rig.release_lease(lease)

    assert [volume.name for volume in rig.emulator.state.volumes.values()] == ["somebody-elses-volume"]


def test_row_33_a_volume_that_stays_keeps_the_lease_open_for_the_reaper(rig: Rig, lease: Lease) -> None:
    rig.emulator.plant_volume(str(lease.name), foreign=False)
    body = {"id": "conflict", "message": "The volume is still attached."}
    fault = rig.emulator.fault("DELETE", r"/v2/volumes/[^/]+", phase="status", status=409, body=body, times=FOR_EVER)

    with pytest.raises(LeaseError, match="cannot be deleted"):
        rig.release_lease(lease)

    row = rig.ledger.lease(lease.lease_id)
    assert (row.state, row.released_at is not None) == ("releasing", True)
    fault.times = 0
    rig.reap()
    assert rig.ledger.open_leases() == []
