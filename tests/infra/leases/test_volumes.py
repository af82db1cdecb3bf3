"""Volumes for models: created, found again, attached and detached, without ever delaying a machine's release."""

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bench.errors import CloudError, CloudLimitError, CloudRefusedError, LeaseError, LedgerError, LostReplyError
from bench.machine.names import VolumeName, last_used
from infra.clouds.abilities import Volume
from infra.clouds.cloud import Leftover
from infra.leases.listing import stored_items
from infra.leases.volumes import VolumeContext, VolumeRequest, acquire_volume, detach_volume
from infra.ledger.lease import Lease
from infra.ledger.volumes import VolumeBook
from tests.emulators.digitalocean.droplet_life import HELD_MAX_S
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.digitalocean.replies import Request
from tests.emulators.digitalocean.resources import Volume as TheirVolume
from tests.infra.rented import KIND, Rig
from tests.pairs import thin_matrix

SOURCE = "hf:org/model@0123456789012345678901234567890123456789"
ACTIONS = r"/v2/volumes/[^/]+/actions"
AFTER = ("after", "close_after", "silence_after", "truncated", "empty", "garbage")
BEFORE = ("before", "close", "silence")
REFUSED = {"id": "bad_request", "message": "invalid volume name or size"}


@pytest.fixture
def lease(rig: Rig) -> Iterator[Lease]:
    yield (lease := rig.take(minutes=240))
    rig.release_lease(lease)
    rig.clock.sleep(40 * 24 * 3600)  # whatever is kept on purpose is past its time then


def wanted(lease: Lease, **changes: object) -> VolumeRequest:
    fields = {"source": SOURCE, "size_gib": 20, "machine_id": str(lease.machine_id), "region": str(lease.region)}
    return VolumeRequest(**{**fields, "until": lease.expires_at, **changes})  # type: ignore[arg-type]  # fields by name


def presign(rig: Rig, lease: Lease, **changes: object) -> Volume:
    return acquire_volume(keeper(rig), wanted(lease, **changes), rig.said.append)


def book(rig: Rig) -> VolumeBook:
    return VolumeBook(rig.folder / "ledger.sqlite", rig.clock)


def keeper(rig: Rig) -> VolumeContext:
    return VolumeContext(rig.cloud, book(rig), rig.clock)


def on_record(rig: Rig) -> list[tuple[str, str]]:
    return [(one.name, one.state) for one in book(rig).open_volumes()]


def take_back(rig: Rig, lease: Lease, volume: Volume) -> bool:
    return detach_volume(rig.cloud, rig.clock, volume, str(lease.machine_id))


def volumes(rig: Rig) -> list[TheirVolume]:
    return [one for one in rig.emulator.state.volumes.values() if one.name.startswith("nb-")]


def holders(rig: Rig) -> list[str | None]:
    rig.emulator.settle()
    return [None if one.droplet_id is None else str(one.droplet_id) for one in volumes(rig)]


def creates(rig: Rig) -> int:
    return len(rig.emulator.requests("POST", "/v2/volumes"))


def test_a_volume_is_created_with_a_filesystem_and_attached(rig: Rig, lease: Lease) -> None:
    volume = presign(rig, lease)

    (made,) = volumes(rig)
    name = VolumeName.parse(volume.name)
    assert name is not None
    assert (made.name, made.region, made.size_gib) == (volume.name, lease.region, 20)
    assert (made.filesystem_type, made.filesystem_label) == ("ext4", name.label)
    assert holders(rig) == [lease.machine_id]
    assert last_used(tuple(made.tags)) is not None


def test_a_volume_is_found_again_by_the_next_night(rig: Rig, lease: Lease) -> None:
    first = presign(rig, lease)
    assert take_back(rig, lease, first)
    rig.release_lease(lease)

    next_lease = rig.take(night="2026-11-22")
    second = presign(rig, next_lease)

    assert (second.volume_id, creates(rig)) == (first.volume_id, 1)
    assert holders(rig) == [next_lease.machine_id]
    rig.release_lease(next_lease)


def test_attaching_again_to_the_same_machine_changes_nothing(rig: Rig, lease: Lease) -> None:
    assert presign(rig, lease).volume_id == presign(rig, lease).volume_id

    assert (creates(rig), holders(rig)) == (1, [lease.machine_id])


@pytest.mark.parametrize(
    "changes", [{"source": "hf:org/other@" + 40 * "1"}, {"size_gib": 30}], ids=["another model", "too small"]
)
def test_a_volume_that_is_too_small_is_not_used(rig: Rig, lease: Lease, changes: dict[str, object]) -> None:
    take_back(rig, lease, presign(rig, lease))
    rig.clock.sleep(60)

    presign(rig, lease, **changes)

    assert creates(rig) == 2


def test_a_volume_that_expires_before_the_night_ends_is_not_used(rig: Rig, lease: Lease) -> None:
    take_back(rig, lease, presign(rig, lease))
    rig.clock.sleep(60)

    presign(rig, lease, until=rig.clock.now() + timedelta(days=31))

    assert creates(rig) == 2


def test_a_volume_in_another_region_stays_there_and_no_second_one_is_created(rig: Rig, lease: Lease) -> None:
    take_back(rig, lease, presign(rig, lease))
    away = rig.take(night="away", regions=("tor1",))

    with pytest.raises(LeaseError, match=r"nb-vol-\w+-atl1-x\d+ is in atl1, and the machine is in tor1"):
        presign(rig, away)

    assert (creates(rig), holders(rig)) == (1, [None])
    rig.release_lease(away)


def test_a_volume_attached_to_another_machine_stays_there(rig: Rig, lease: Lease) -> None:
    presign(rig, lease)
    other = rig.take(night="beside")

    with pytest.raises(LeaseError, match=f"is already attached to another machine, {lease.machine_id}"):
        presign(rig, other)

    assert holders(rig) == [lease.machine_id]
    rig.release_lease(other)


@pytest.mark.parametrize("phase", thin_matrix(AFTER, each=3))
def test_row_30_a_lost_reply_creates_no_second_volume(rig: Rig, lease: Lease, phase: str) -> None:
    rig.emulator.fault("POST", "/v2/volumes", phase=phase)

    volume = presign(rig, lease)

    assert [one.volume_id for one in volumes(rig)] == [volume.volume_id]
    assert (creates(rig), holders(rig)) == (1, [lease.machine_id])


@pytest.mark.parametrize("phase", BEFORE)
def test_row_30_a_lost_request_is_not_repeated(rig: Rig, lease: Lease, phase: str) -> None:
    rig.emulator.fault("POST", "/v2/volumes", phase=phase)

    with pytest.raises(CloudError, match="block_storage:create"):
        presign(rig, lease)

    assert (creates(rig), volumes(rig)) == (1, [])


def test_row_30_a_throttled_call_waits(rig: Rig, lease: Lease) -> None:
    rig.emulator.fault("POST", "/v2/volumes", phase="status", status=429, retry_after=20)

    presign(rig, lease)

    assert (creates(rig), holders(rig)) == (2, [lease.machine_id])


def test_row_30_a_refusal_that_pydo_returns_as_a_reply_is_raised(rig: Rig, lease: Lease) -> None:
    rig.emulator.fault("POST", "/v2/volumes", phase="status", status=400, body=REFUSED)

    with pytest.raises(CloudError, match="invalid volume name or size"):
        presign(rig, lease)

    assert volumes(rig) == []


def test_a_lost_reply_whose_volume_cannot_be_searched_leaves_it_on_record(rig: Rig, lease: Lease) -> None:
    rig.emulator.fault("POST", "/v2/volumes", phase="after")
    rig.emulator.fault("GET", "/v2/volumes", phase="status", status=401, nth=2)  # the first one is before the request

    with pytest.raises(LostReplyError, match=r"its volume cannot be searched: .*The token is wrong or revoked"):
        presign(rig, lease)

    (made,) = volumes(rig)
    assert on_record(rig) == [(made.name, "intended")]


def test_a_volume_name_in_use_is_our_own_volume(rig: Rig, lease: Lease) -> None:
    conflict = {"id": "conflict", "message": "a volume with this name exists in this region"}
    rig.emulator.fault("POST", "/v2/volumes", phase="after", status=409, body=conflict)

    volume = presign(rig, lease)

    assert [one.volume_id for one in volumes(rig)] == [volume.volume_id]


@pytest.mark.parametrize("phase", thin_matrix([*BEFORE, *AFTER], each=4))
def test_row_31_a_lost_reply_to_attach_does_no_harm(rig: Rig, lease: Lease, phase: str) -> None:
    rig.emulator.fault("POST", ACTIONS, phase=phase)

    presign(rig, lease)

    assert holders(rig) == [lease.machine_id]


def test_row_31_another_event_is_waited_for(rig: Rig, lease: Lease) -> None:
    pending = {"id": "unprocessable_entity", "message": "Droplet already has a pending event."}
    rig.emulator.fault("POST", ACTIONS, phase="status", status=422, body=pending, times=3)

    presign(rig, lease)

    assert holders(rig) == [lease.machine_id]


def test_row_31_an_attach_that_errored_is_tried_again(rig: Rig, lease: Lease) -> None:
    rig.emulator.behaviour.action_fates["attach_volume"].append("errored")

    presign(rig, lease)

    assert holders(rig) == [lease.machine_id]


def test_row_31_a_new_volume_that_cannot_be_attached_is_deleted_and_the_night_continues(rig: Rig, lease: Lease) -> None:
    rig.emulator.behaviour.action_fates["attach_volume"].extend(["errored"] * 50)
    began = rig.clock.now()

    with pytest.raises(CloudError, match="was not attached to machine"):
        presign(rig, lease)

    assert (rig.clock.now() - began).total_seconds() < 240
    assert volumes(rig) == []
    assert rig.release_lease(lease).state == "released"


def test_row_31_a_new_volume_whose_attach_hangs_cannot_be_deleted_and_a_later_night_uses_it(
    rig: Rig, lease: Lease
) -> None:
    rig.emulator.behaviour.action_fates["attach_volume"].append("stuck")

    with pytest.raises(CloudError, match="was not attached to machine"):
        presign(rig, lease)
    rig.clock.sleep(HELD_MAX_S)
    rig.release_lease(lease)
    later = rig.take(night="later")

    (made,) = volumes(rig)
    assert presign(rig, later).volume_id == made.volume_id
    rig.release_lease(later)


@pytest.mark.parametrize(
    ("behaviour", "fields", "error"),
    [({"volume_limit": 0}, {}, CloudLimitError), ({}, {"regions": ("mem1",)}, CloudRefusedError)],
)
def test_a_volume_that_the_account_or_the_region_cannot_have_is_no_open_request(
    rig: Rig, behaviour: dict[str, int], fields: dict[str, Any], error: type[CloudError]
) -> None:
    rig.emulator.sell(KIND, regions=("atl1", "mem1"))
    vars(rig.emulator.behaviour).update(behaviour)
    lease = rig.take(**fields)

    with pytest.raises(error) as refused:
        presign(rig, lease)

    assert "scope" not in str(refused.value)
    assert book(rig).open_volumes("digitalocean") == []
    assert rig.release_lease(lease).state == "released"


def test_row_31_a_volume_with_a_model_is_kept_after_a_failed_attach(rig: Rig, lease: Lease) -> None:
    take_back(rig, lease, presign(rig, lease))
    rig.emulator.behaviour.action_fates["attach_volume"].extend(["errored"] * 50)

    with pytest.raises(CloudError, match="was not attached"):
        presign(rig, lease)

    assert holders(rig) == [None]


def test_row_32_a_detach_that_hangs_does_not_delay_the_release(rig: Rig, lease: Lease) -> None:
    rig.emulator.behaviour.deletes_pending = True
    volume = presign(rig, lease)
    rig.emulator.behaviour.action_fates["detach_volume"].append("stuck")
    began = rig.clock.now()

    assert not take_back(rig, lease, volume)
    assert (rig.clock.now() - began).total_seconds() < 60
    assert rig.release_lease(lease).state == "released"

    assert rig.billing() == []
    assert holders(rig) == [None]


def test_row_32_a_silent_cloud_does_not_delay_the_release(rig: Rig, lease: Lease) -> None:
    volume = presign(rig, lease)
    faults = [
        rig.emulator.fault(method, r"/v2/volumes.*", phase="before", times=FOR_EVER) for method in ("GET", "POST")
    ]
    began = rig.clock.now()

    assert not take_back(rig, lease, volume)

    assert (rig.clock.now() - began).total_seconds() < 60
    for fault in faults:
        fault.times = 0
    assert rig.release_lease(lease).state == "released"


def test_deleting_a_machine_leaves_its_volume(rig: Rig, lease: Lease) -> None:
    presign(rig, lease)

    rig.release_lease(lease)

    assert holders(rig) == [None]


def test_a_volume_unused_for_a_week_is_deleted(rig: Rig, lease: Lease) -> None:
    take_back(rig, lease, presign(rig, lease))
    rig.release_lease(lease)
    rig.clock.sleep(6 * 24 * 3600)
    again = rig.take(night="again")
    take_back(rig, again, presign(rig, again))
    rig.release_lease(again)

    rig.clock.sleep(6 * 24 * 3600)
    kept = [one.name for one in volumes(rig)]
    assert [name for name in rig.reap().removed if name in kept] == []
    rig.clock.sleep(2 * 24 * 3600)

    assert kept[0] in rig.reap().removed
    assert volumes(rig) == []


def test_an_expired_volume_is_deleted_once_it_is_detached(rig: Rig, lease: Lease) -> None:
    name = VolumeName("0af3", "atl1", rig.clock.now() + timedelta(hours=1))
    planted = rig.emulator.plant_volume(str(name), foreign=False)
    planted.droplet_id = int(str(lease.machine_id))
    rig.clock.sleep(2 * 3600)

    reaped = rig.reap()
    assert (reaped.removed, reaped.failed) == ([], {})
    rig.release_lease(lease)
    rig.reap()

    assert volumes(rig) == []


def test_a_foreign_volume_is_neither_used_nor_changed(rig: Rig, lease: Lease) -> None:
    rig.emulator.plant_volume("their-disk")
    rig.emulator.plant_volume("nb-photos")

    presign(rig, lease)

    assert rig.reap().unrecognized[-1].endswith("named 'nb-photos'")


def test_a_token_that_may_not_attach_fails_at_once(rig: Rig, lease: Lease) -> None:
    cloud = rig.cloud_with(rig.emulator.add_token("block_storage:read", "block_storage:create"))
    began = rig.clock.now()

    with pytest.raises(CloudError, match="lacks the scope block_storage_action:create"):
        acquire_volume(VolumeContext(cloud, book(rig), rig.clock), wanted(lease), rig.said.append)

    assert (rig.clock.now() - began).total_seconds() < 30


def test_a_volumes_name_is_recorded_before_its_request(rig: Rig, lease: Lease) -> None:
    at_the_call: list[list[tuple[str, str]]] = []

    def look(request: Request) -> None:
        if (request.method, request.path) == ("POST", "/v2/volumes"):
            at_the_call.append(on_record(rig))

    rig.emulator.api.before_reply = look
    volume = presign(rig, lease)

    assert at_the_call == [[(volume.name, "intended")]]
    assert on_record(rig) == [(volume.name, "made")]


def test_without_a_ledger_no_volume_is_requested(rig: Rig, lease: Lease) -> None:
    nowhere = VolumeContext(rig.cloud, VolumeBook(rig.folder / "no-folder" / "ledger.sqlite", rig.clock), rig.clock)

    with pytest.raises(LedgerError, match="no volume is created without it"):
        acquire_volume(nowhere, wanted(lease), rig.said.append)

    assert creates(rig) == 0


def test_a_requested_volume_that_is_not_listed_yet_is_waited_for(rig: Rig, lease: Lease) -> None:
    rig.emulator.lag["volume_list"] = 60.0
    name = VolumeName(wanted(lease).content, str(lease.region), rig.clock.now() + timedelta(days=30))
    book(rig).intend("digitalocean", str(name), 20)
    made = rig.cloud.make_volume(name, 20)  # whoever asked died before the answer

    volume = presign(rig, lease)

    assert (volume.volume_id, creates(rig), holders(rig)) == (made.volume_id, 1, [lease.machine_id])
    assert on_record(rig) == [(str(name), "made")]


def test_a_volume_that_was_never_created_is_searched_once_and_created(rig: Rig, lease: Lease) -> None:
    name = VolumeName(wanted(lease).content, str(lease.region), rig.clock.now() + timedelta(days=29))
    book(rig).intend("digitalocean", str(name), 20)
    began = rig.clock.now()

    volume = presign(rig, lease)

    assert (rig.clock.now() - began).total_seconds() >= rig.cloud.settle_s
    assert on_record(rig) == [(volume.name, "made")]
    assert creates(rig) == 1


def test_while_it_is_unknown_whether_a_volume_exists_no_second_one_is_created(rig: Rig, lease: Lease) -> None:
    name = VolumeName(wanted(lease).content, str(lease.region), rig.clock.now() + timedelta(days=29))
    book(rig).intend("digitalocean", str(name), 20)
    fault = rig.emulator.fault("GET", "/v2/volumes", phase="before", nth=2, times=FOR_EVER)

    with pytest.raises(CloudError):
        presign(rig, lease)
    fault.times = 0

    assert (creates(rig), on_record(rig)) == (0, [(str(name), "intended")])


@pytest.mark.parametrize("has_volume", [True, False])
def test_the_reaper_brings_the_record_of_volumes_up_to_date(rig: Rig, lease: Lease, has_volume: bool) -> None:
    name = VolumeName("0af3", "atl1", rig.clock.now() + timedelta(days=30))
    book(rig).intend("digitalocean", str(name), 20)
    if has_volume:
        rig.emulator.plant_volume(str(name), foreign=False)

    rig.reap()
    young = on_record(rig)
    rig.clock.sleep(3600)
    rig.reap()

    assert young == [(str(name), "made" if has_volume else "intended")]
    assert on_record(rig) == ([(str(name), "made")] if has_volume else [])
    assert lease.machine_id in [str(one.droplet_id) for one in rig.emulator.living("nb")]


@pytest.mark.usefixtures("lease")
@pytest.mark.parametrize("date", ["soon", "2026-11-20", b"\xff"])
def test_a_record_that_cannot_be_read_keeps_no_other_from_being_brought_up_to_date(rig: Rig, date: object) -> None:
    deadline = rig.clock.now() + timedelta(days=30)
    broken, there, gone = (str(VolumeName(content, "atl1", deadline)) for content in ("0af1", "0af2", "0af3"))
    for name in (broken, there, gone):
        book(rig).intend("digitalocean", name, 20)
    with sqlite3.connect(rig.ledger.path) as file:
        file.execute("UPDATE volumes SET intended_at = ? WHERE name = ?", [date, broken])
    rig.emulator.plant_volume(there, foreign=False)
    rig.clock.sleep(3600)

    reaped = rig.reap()
    listed = [item.description for item in stored_items({}, book(rig).open_volumes())]

    assert sorted(on_record(rig)) == [(broken, "intended"), (there, "made")]
    assert list(reaped.failed) == [f"record of volume {broken}"]
    assert "date" in reaped.failed[f"record of volume {broken}"]
    assert reaped.failed_clouds == set()  # the cloud does not list it, so nothing is billed and a night may begin
    assert any(f"volume {broken}: requested, without a reply, at an unknown time" in text for text in listed)


def test_a_night_searches_for_a_volume_whose_record_has_no_date_before_it_creates_one(rig: Rig, lease: Lease) -> None:
    name = VolumeName(wanted(lease).content, str(lease.region), rig.clock.now() + timedelta(days=29))
    book(rig).intend("digitalocean", str(name), 20)
    with sqlite3.connect(rig.ledger.path) as file:
        file.execute("UPDATE volumes SET intended_at = 'soon'")

    volume = presign(rig, lease)

    assert (creates(rig), on_record(rig)) == (1, [(volume.name, "made")])


def test_a_deleted_volume_is_no_longer_on_record(rig: Rig, lease: Lease) -> None:
    take_back(rig, lease, presign(rig, lease))
    rig.release_lease(lease)
    rig.clock.sleep(8 * 24 * 3600)

    rig.reap()

    assert (volumes(rig), on_record(rig)) == ([], [])


def test_a_volume_that_is_listed_after_its_deletion_is_forgotten_in_the_end(rig: Rig, lease: Lease) -> None:
    volume = presign(rig, lease)
    take_back(rig, lease, volume)
    rig.release_lease(lease)
    rig.emulator.behaviour.gone_lag["volume_list"] = 3600.0
    rig.clock.sleep(8 * 24 * 3600)

    first = rig.reap()
    again = rig.reap()
    rig.clock.sleep(3600)
    rig.reap()

    assert (first.failed, again.failed, volumes(rig)) == ({}, {}, [])
    assert volume.name in first.removed
    assert VolumeBook(rig.ledger.path, rig.clock).open_volumes() == []


def test_a_night_whose_volume_was_just_deleted_goes_on_without_it(rig: Rig, lease: Lease) -> None:
    volume = presign(rig, lease)
    take_back(rig, lease, volume)
    rig.emulator.behaviour.gone_lag["volume_list"] = 3600.0
    rig.cloud.remove(Leftover("volume", volume.volume_id, volume.name))
    began = rig.clock.now()

    with pytest.raises(CloudError, match="was not attached"):
        presign(rig, lease)

    assert (rig.clock.now() - began).total_seconds() < 200
    assert volumes(rig) == []
