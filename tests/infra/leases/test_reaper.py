"""The reaper: with and without records, alone and beside others, it releases what has expired and nothing else."""

import json
import multiprocessing
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import cycle

import pytest

from bench.errors import CloudDeniedError
from bench.machine.names import ImageName, MachineName, VolumeName, used_tag
from flows.show.leases import show_leases
from infra.clouds.cloud import Leftover
from infra.clouds.digitalocean.cloud import DigitalOcean
from infra.clouds.local import LocalCloud
from infra.leases.acquire import take_lease
from infra.leases.inventory import Owner, remove_stored, take_inventory
from infra.leases.listing import lease_views
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.reaper import Reaped, reap
from infra.leases.release import release_lease
from infra.leases.volumes import CREATE_S, VolumeContext, VolumeRequest, acquire_volume
from infra.ledger.heartbeat import keep_heartbeat
from infra.ledger.lease import Lease, LeaseInUseError
from infra.ledger.ledger import Intent
from infra.ledger.stage_costs import StageBook
from infra.ledger.volumes import VolumeBook
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.emulators.digitalocean.replies import Request
from tests.infra.rented import DROPLETS, HOUR_S, KIND, ONE_DROPLET, Door, Rig, lease_request

DIED = 9
PATIENCE_S = 300


def dies(work: Callable[[Door], None], rig: Rig) -> bool:
    """Run this in a process of its own with the rig's account, and check that it dies as intended."""
    # Not forked: this process has threads, and any of their locks may be held at that moment.
    child = multiprocessing.get_context("spawn").Process(target=work, args=[rig.door()])
    child.start()
    child.join(PATIENCE_S)
    return child.exitcode == DIED


def plant(rig: Rig, name: str) -> str:
    return str(rig.emulator.plant_droplet(name, foreign=False).droplet_id)


def test_a_machine_without_a_record_is_released_after_its_deadline(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)

    reaped = rig.reap(ledger=rig.lost_ledger())

    assert reaped.released == [lease.machine_id]
    assert rig.billing() == []


def test_a_machine_without_a_record_is_left_alone_before_its_deadline(rig: Rig) -> None:
    lease = rig.take()

    assert rig.reap(ledger=rig.lost_ledger()).released == []
    assert rig.billing() == [lease.name]


@pytest.mark.parametrize("end", ["soon", "", "17952.5"])
def test_a_machine_with_an_unreadable_deadline_is_deleted(rig: Rig, end: str) -> None:
    machine_id = plant(rig, f"nb-01k9x-a1-x{end}")

    assert rig.reap().released == [machine_id]


@pytest.mark.parametrize("name", ["nb-web", "nb-01k9x", "NB-a1"])
def test_a_machine_with_a_similar_name_is_reported_and_left_alone(rig: Rig, name: str) -> None:
    rig.emulator.plant_droplet(name)

    reaped = rig.reap(everything=True)

    assert reaped.released == []
    assert [name in line for line in reaped.unrecognized] == [True]
    rig.emulator.state.droplets.popitem()
    rig.emulator.state.bill.intervals.pop()


def test_a_machine_with_our_tag_and_another_name_is_reported_and_left_alone(rig: Rig) -> None:
    rig.emulator.plant_droplet("bench", tags=["nb"])

    reaped = rig.reap(everything=True)

    assert (reaped.released, len(reaped.unrecognized)) == ([], 1)


def test_machines_of_another_prefix_are_ignored(rig: Rig) -> None:
    lease = rig.take()

    reaped = rig.reap(cloud=rig.cloud_with(prefix="ci"), ledger=rig.lost_ledger(), everything=True)

    assert (reaped.released, reaped.unrecognized) == ([], [])
    assert rig.billing() == [lease.name]


def test_what_was_rented_under_an_earlier_prefix_is_released_with_its_key_and_tags(rig: Rig) -> None:
    lease = rig.take()
    rig.move_to_a_dead_process()

    reaped = rig.reap(cloud=rig.cloud_with(prefix="ci"))

    assert (reaped.released, reaped.failed) == ([lease.machine_id], {})
    assert (rig.billing(), rig.ledger.open_leases()) == ([], [])
    assert not [key.name for key in rig.emulator.state.keys.values() if key.name.startswith("nb-")]


def kept_volume(rig: Rig, lease: Lease, cloud: DigitalOcean) -> str:
    """The name of a volume that a night on this lease keeps its model on."""
    context = VolumeContext(cloud, VolumeBook(rig.ledger.path, rig.clock), rig.clock)
    wanted = VolumeRequest("model@1", 100, str(lease.machine_id), str(lease.region), lease.expires_at)
    return acquire_volume(context, wanted, rig.said.append).name


def test_a_volume_of_an_earlier_prefix_stays_on_record_and_in_the_inventory(rig: Rig) -> None:
    lease, ci = rig.take(), rig.cloud_with(prefix="ci")
    volume = kept_volume(rig, lease, rig.cloud)
    rig.release_lease(lease)
    rig.clock.sleep(HOUR_S)

    rig.reap(cloud=ci)
    on_record = VolumeBook(rig.ledger.path).open_volumes()
    owner = Owner({"digitalocean": ci}, rig.ledger, rig.clock, None)
    found = take_inventory(owner)
    remove_stored(owner, found.to_delete, Reaped())

    assert [one.name for one in on_record] == [volume]
    assert [(one.sort, one.name) for one in found.to_delete] == [("volume", volume)]
    assert (VolumeBook(rig.ledger.path).open_volumes(), rig.cloud.volumes()) == ([], [])


def test_a_night_under_another_prefix_leaves_the_record_of_an_earlier_ones_volume(rig: Rig) -> None:
    lease, ci = rig.take(), rig.cloud_with(prefix="ci")
    earlier = kept_volume(rig, lease, rig.cloud)
    rig.release_lease(lease)

    lease = rig.take(cloud=ci)
    volume = kept_volume(rig, lease, ci)
    rig.release_lease(lease, cloud=ci)

    assert {one.name for one in VolumeBook(rig.ledger.path).open_volumes()} == {earlier, volume}
    for one in (*rig.cloud.volumes(), *ci.volumes()):
        ci.remove(Leftover("volume", one.volume_id, one.name))


def test_the_inventory_has_an_open_lease_of_an_earlier_prefix_once_with_its_key(rig: Rig) -> None:
    lease = rig.take()

    found = take_inventory(Owner({"digitalocean": rig.cloud_with(prefix="ci")}, rig.ledger, rig.clock, None))

    assert [(one.sort, one.name) for one in found.kept] == [("machine", lease.machine_id), ("key", lease.name)]


def test_a_key_that_appears_late_is_deleted_under_the_prefix_of_its_lease(rig: Rig) -> None:
    lease = rig.take()
    rig.release_lease(lease)
    public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    rig.emulator.plant_key(str(lease.name), public, foreign=False)

    rig.reap(cloud=rig.cloud_with(prefix="ci"))

    assert not [key.name for key in rig.emulator.state.keys.values() if key.name.startswith("nb-")]


def test_everything_includes_machines_of_a_running_night(rig: Rig) -> None:
    lease = rig.take()

    assert rig.reap(everything=True).released == [lease.machine_id]


def test_a_running_night_is_left_alone_until_its_lease_expires(rig: Rig) -> None:
    lease = rig.take()

    assert rig.reap().released == []
    rig.clock.sleep(HOUR_S + 1)
    assert rig.reap().released == [lease.machine_id]


def test_each_machine_of_a_night_is_listed_by_its_name_and_released_for_itself(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (
        rig.take(machine=name, minutes=minutes) for name, minutes in zip("abc", (60, 120, 120), strict=True)
    )

    show_leases(lease_views(rig.ledger, StageBook(rig.folder / "stages.sqlite", rig.clock)), [], as_json=True)

    shown = [(one["machine"], one["name"]) for one in json.loads(capsys.readouterr().out)]
    assert shown == [(first.machine_id, "a"), (second.machine_id, "b"), (third.machine_id, "c")]
    assert rig.reap().released == []
    rig.clock.sleep(HOUR_S + 1)
    assert rig.reap().released == [first.machine_id]
    rig.move_to_a_dead_process()
    assert set(rig.reap().released) == {second.machine_id, third.machine_id}
    assert rig.billing() == []


def test_a_machine_of_a_released_lease_is_deleted(rig: Rig) -> None:
    lease = rig.take()
    rig.ledger.mark_released(lease.lease_id)

    assert rig.reap().released == [lease.machine_id]


def test_an_intended_lease_of_a_dead_process_is_searched_and_closed(rig: Rig) -> None:
    assert dies(die_in_the_create_call, rig)
    orphan = rig.ledger.open_leases()[0]

    rig.reap()

    assert (orphan.state, rig.posts()) == ("intended", 1)
    assert (rig.billing(), rig.ledger.open_leases()) == ([], [])


def die_in_the_create_call(door: Door) -> None:
    """Request a machine and exit before the reply is recorded."""
    ledger = door.ledger()
    ledger.hold = lambda *_args: os._exit(DIED)  # type: ignore[method-assign]
    take_lease(door.cloud(), ledger, door.clock, lease_request(), night="2026-11-21")


def test_a_machine_that_appears_long_after_a_lost_reply_is_deleted(rig: Rig) -> None:
    for view in ("list", "name_list", "tag_list"):
        rig.emulator.hide(view, 500)
    rig.emulator.fault("POST", DROPLETS, phase="close_after")
    lease = rig.take()

    late = [one for one in rig.billing() if one != lease.name]
    rig.clock.sleep(500)
    rig.reap()

    assert (len(late), rig.billing()) == (1, [lease.name])


def test_a_machine_that_appears_late_is_deleted_with_its_lease(rig: Rig) -> None:
    for view in ("list", "name_list", "tag_list"):
        rig.emulator.hide(view, 500)
    rig.emulator.fault("POST", DROPLETS, phase="close_after")
    lease = rig.take()
    rig.clock.sleep(500)

    rig.release_lease(lease)

    assert rig.billing() == []


def test_two_reapers_at_once_do_no_harm(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)
    other = Rig(rig.emulator, rig.clock, rig.folder)  # with a client and a ledger of its own

    with ThreadPoolExecutor(2) as both:
        # They share the clock: while one waits for a reply, the pauses of the other use up its time.
        rounds = [both.submit(one.reap, patience_s=24 * HOUR_S) for one in (rig, other)]

    assert [one.result().failed for one in rounds] == [{}, {}]
    assert (rig.ledger.lease(lease.lease_id).state, rig.billing()) == ("released", [])


def test_a_night_on_another_host_counts_as_running_until_its_lease_expires(rig: Rig) -> None:
    lease = rig.take()
    rig.move_to_another_host(lease)

    rig.clock.sleep(HOUR_S - 60)
    before, seen = rig.reap(), rig.ledger.lease(lease.lease_id).is_seen()
    rig.clock.sleep(120)
    after = rig.reap()

    assert (before.released, after.released, seen) == ([], [lease.machine_id], False)


def test_a_running_night_records_its_heartbeat_repeatedly(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(600)
    began = rig.clock.now()

    with keep_heartbeat(rig.ledger, lease.night, every_s=0.02):
        until = time.monotonic() + PATIENCE_S
        while rig.ledger.lease(lease.lease_id).heartbeat_at != began and time.monotonic() < until:
            time.sleep(0.02)

    assert rig.ledger.lease(lease.lease_id).heartbeat_at == began


def test_a_failed_release_is_reported_and_the_next_machine_is_released(rig: Rig) -> None:
    lease = rig.take()
    rig.ledger.mark_released(lease.lease_id)
    second = plant(rig, str(MachineName("01k9x", 1, rig.clock.now() - timedelta(hours=1))))
    fault = rig.emulator.fault("DELETE", f"/v2/droplets/{lease.machine_id}", phase="before", times=FOR_EVER)

    reaped = rig.reap(patience_s=600)

    assert reaped.released == [second]
    assert [str(lease.machine_id) in what for what in reaped.failed] == [True]
    fault.times = 0


def test_a_lease_whose_night_rents_again_while_it_is_released_stays_open_with_its_key(rig: Rig) -> None:
    lease = rig.take(minutes=30)
    rig.clock.sleep(2400)
    again = Intent(lease.night, lease.cloud, 2.0, rig.clock.now() + timedelta(hours=1), attempt=2)

    def rent_again(request: Request) -> None:
        if request.method == "DELETE":
            rig.emulator.api.before_reply = None
            rig.ledger.intend(lease.lease_id, again)
            rig.ledger.hold(lease.lease_id, "the next one")

    rig.emulator.api.before_reply = rent_again
    reaped = rig.reap()

    assert reaped.released == [lease.machine_id]  # the machine of the first attempt
    assert (reaped.failed, "its night makes attempt 2" in rig.said[-1]) == ({}, True)
    found = rig.ledger.lease(lease.lease_id)
    assert (found.state, found.machine_id, found.released_at) == ("held", "the next one", None)
    assert len(rig.emulator.state.keys) == 1
    with pytest.raises(LeaseInUseError, match="attempt 1 is over"):
        release_lease(rig.cloud, rig.ledger, rig.clock, lease)


def test_a_machine_that_its_night_just_requested_outlives_the_release_of_the_attempt_before(rig: Rig) -> None:
    lease = rig.take(minutes=30)
    rig.clock.sleep(2400)
    later = str(MachineName(lease.lease_id, 2, rig.clock.now() + timedelta(hours=1)))
    again = Intent(lease.night, lease.cloud, 2.0, rig.clock.now() + timedelta(hours=1), name=later, attempt=2)

    def rent_again(request: Request) -> None:
        if request.path == "/v2/account":  # after the lease was read, before its machines are deleted
            rig.emulator.api.before_reply = None
            rig.ledger.intend(lease.lease_id, again)
            plant(rig, later)

    rig.emulator.api.before_reply = rent_again
    reaped = rig.reap(cloud=rig.cloud_with(rig.emulator.token))  # which has not asked for its account yet

    assert (reaped.released, rig.billing()) == ([lease.machine_id], [later])
    assert rig.ledger.lease(lease.lease_id).state == "intended"
    release_lease(rig.cloud, rig.ledger, rig.clock, lease.lease_id)


def test_recorded_leases_are_released_though_no_list_answers(rig: Rig) -> None:
    lease = rig.take()
    rig.ledger.mark_releasing(lease.lease_id)
    fault = rig.emulator.fault("GET", DROPLETS, phase="before", times=7)

    reaped = rig.reap()

    assert reaped.released == [lease.machine_id]
    assert fault.matches > 6


def test_a_lease_of_a_cloud_without_a_token_is_reported(rig: Rig) -> None:
    lease = rig.take(minutes=1)
    rig.clock.sleep(90)

    reaped = reap({}, rig.ledger, rig.clock)  # without the clouds of the rig

    assert "no token is set for its cloud" in reaped.failed[str(lease.machine_id)]


def test_expired_keys_volumes_and_images_are_deleted(rig: Rig) -> None:
    public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    past = rig.clock.now() - timedelta(minutes=1)
    name, image = str(MachineName("01k9x", 1, past)), str(ImageName("0af3", past))
    rig.emulator.plant_key(name, public, foreign=False)
    rig.emulator.plant_key("laptop", public.replace("AAAAIAAB", "AAAAIAAC"))
    rig.emulator.plant_volume(name, foreign=False)
    rig.emulator.plant_snapshot(image, foreign=False)
    rig.emulator.plant_snapshot("nb-notes")

    reaped = rig.reap()

    assert sorted(reaped.removed) == sorted([name, name, image])
    assert [key.name for key in rig.emulator.state.keys.values()] == ["laptop"]
    assert ["nb-notes" in line for line in reaped.unrecognized] == [True]


def test_the_key_of_an_open_lease_stays_though_its_first_attempt_has_expired(rig: Rig) -> None:
    rig.emulator.capacity[KIND, "atl1"] = 0
    rig.emulator.later(900, lambda: rig.emulator.capacity.update({(KIND, "atl1"): 1}))
    lease = rig.take(minutes=10, patience_s=3600)

    reaped = rig.reap()

    assert lease.attempt > 1
    assert (reaped.removed, len(rig.emulator.state.keys)) == ([], 1)


def test_a_token_that_may_not_list_volumes_still_releases_machines(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)
    scopes = ("account:read", "droplet:read", "droplet:delete", "ssh_key:read", "ssh_key:delete")
    cloud = rig.cloud_with(rig.emulator.add_token(*scopes))

    reaped = rig.reap(cloud=cloud)

    assert (reaped.released, reaped.failed) == ([lease.machine_id], {})


def test_a_clock_that_jumps_back_only_delays_the_reaper(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.jump(-HOUR_S)
    assert rig.reap().released == []

    rig.clock.sleep(2 * HOUR_S + 1)
    assert rig.reap().released == [lease.machine_id]


def test_the_next_reaper_continues_after_one_that_died(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)
    rig.emulator.fault("GET", ONE_DROPLET, phase="before", times=3)
    assert dies(die_while_reaping, rig)

    assert rig.ledger.lease(lease.lease_id).state == "releasing"
    rig.reap()
    assert (rig.ledger.open_leases(), rig.billing()) == ([], [])


def die_while_reaping(door: Door) -> None:
    """Delete a machine and exit before the look that would confirm it."""
    cloud = door.cloud()
    cloud.find_by_id = lambda _machine_id: os._exit(DIED)  # type: ignore[assignment, method-assign]
    reap({"digitalocean": cloud}, door.ledger(), door.clock)


# What a reaper asks of a cloud; each call may raise anything.
CALLS = ("find_ours", "find", "find_by_id", "release", "leftovers", "remove", "volumes")
ERRORS = (RuntimeError("docker keeps a container"), KeyError("id"), OSError(28, "No space left on device"),
          CloudDeniedError("the token is revoked"))  # fmt: skip


def expired_on_both(rig: Rig) -> tuple[LocalCloud, Lease, Lease]:
    """A second cloud, and an expired lease at each; at the first also a key, and a volume that never came."""
    local = LocalCloud(rig.folder / "machines", rig.clock)
    here = take_lease(local, rig.ledger, rig.clock, LeaseRequest((Choice("local"),), 60), night="2026-11-21")
    there = rig.take()
    past = str(MachineName("01k9x", 1, rig.clock.now()))
    rig.emulator.plant_key(past, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
                           foreign=False)  # fmt: skip
    volume = VolumeName("0af3", "atl1", rig.clock.now())
    VolumeBook(rig.ledger.path, rig.clock).intend("digitalocean", str(volume), 10)
    rig.clock.sleep(HOUR_S + CREATE_S)
    return local, here, there


def raising(rig: Rig, call: str, error: Exception) -> None:
    def fail(*_args: object) -> None:
        raise error

    setattr(rig.cloud, call, fail)


@pytest.mark.parametrize(("call", "error"), list(zip(CALLS, cycle(ERRORS), strict=False)))
def test_whatever_one_cloud_raises_the_others_machines_are_released(rig: Rig, call: str, error: Exception) -> None:
    local, here, _there = expired_on_both(rig)
    raising(rig, call, error)

    reaped = reap({"digitalocean": rig.cloud, "local": local}, rig.ledger, rig.clock, patience_s=600)

    assert str(here.machine_id) in reaped.released
    assert local.find_ours() == []
    assert reaped.failed_clouds == {"digitalocean"}
    assert any(str(error.args[-1]) in why for why in reaped.failed.values())
    delattr(rig.cloud, call)


def test_a_machine_whose_release_raises_anything_does_not_keep_the_others(rig: Rig) -> None:
    now = rig.clock.now()
    planted = [plant(rig, str(MachineName(name, 1, now))) for name in ("one", "two", "six")]
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)
    release = rig.cloud.release

    def keeps_one(machine_id: str) -> None:
        if machine_id == planted[1]:
            raise RuntimeError("docker keeps a container")
        release(machine_id)

    rig.cloud.release = keeps_one  # type: ignore[method-assign]
    reaped = rig.reap(patience_s=600)
    del rig.cloud.release

    assert sorted(reaped.released) == sorted([planted[0], planted[2], str(lease.machine_id)])
    assert ["docker keeps a container" in why for why in reaped.failed.values()] == [True]


def test_a_leftover_that_cannot_be_deleted_does_not_keep_the_others(rig: Rig) -> None:
    past = rig.clock.now() - timedelta(minutes=1)
    kept, gone = (rig.emulator.plant_snapshot(str(ImageName(name, past)), foreign=False) for name in ("0a", "0b"))
    remove = rig.cloud.remove

    def keeps_one(leftover: Leftover) -> None:
        if leftover.name == kept.name:
            raise RuntimeError("no more")
        remove(leftover)

    rig.cloud.remove = keeps_one  # type: ignore[method-assign]
    reaped = rig.reap()
    del rig.cloud.remove

    assert (reaped.removed, reaped.failed) == ([gone.name], {kept.name: "RuntimeError: no more"})


BROKEN_ROWS = {
    "a lease's deadline": "UPDATE leases SET expires_at = 'tomorrow' WHERE lease_id = :broken",
    "a lease's deadline without a time zone": "UPDATE leases SET expires_at = '2026-11-21' WHERE lease_id = :broken",
    "an attempt": "UPDATE attempts SET began_at = 'x' WHERE lease_id = :broken",
    "another column": "ALTER TABLE leases ADD COLUMN colour TEXT",
    "a byte that is not UTF-8": "UPDATE leases SET night = CAST(x'ff' AS TEXT) WHERE lease_id = :broken",
    "a lease's name as a BLOB": "UPDATE leases SET name = CAST(name AS BLOB) WHERE lease_id = :broken",
}


@pytest.mark.parametrize("what", BROKEN_ROWS)
def test_a_row_that_is_damaged_or_of_another_version_does_not_keep_other_leases(rig: Rig, what: str) -> None:
    local, here, there = expired_on_both(rig)
    with sqlite3.connect(rig.ledger.path) as file:
        file.execute(BROKEN_ROWS[what], {"broken": there.lease_id})

    reaped = reap({"digitalocean": rig.cloud, "local": local}, rig.ledger, rig.clock)

    # The broken one's machine is past its deadline by its name, which needs no row.
    assert {str(here.machine_id), str(there.machine_id)} <= set(reaped.released)
    assert rig.billing() == []
    assert bool(reaped.failed) == what.startswith("a lease's")


def test_the_machine_of_a_row_that_cannot_be_read_is_left_alone_before_its_deadline(rig: Rig) -> None:
    local = LocalCloud(rig.folder / "machines", rig.clock)
    here = take_lease(local, rig.ledger, rig.clock, LeaseRequest((Choice("local"),), 60), night="2026-11-21")
    there = rig.take()
    with sqlite3.connect(rig.ledger.path) as file:
        file.execute("UPDATE leases SET expires_at = 'tomorrow'")

    reaped = reap({"digitalocean": rig.cloud, "local": local}, rig.ledger, rig.clock)

    assert (reaped.released, rig.billing()) == ([], [there.name])
    assert [found.machine_id for found in local.find_ours()] == [here.machine_id]
    assert sorted(reaped.failed) == sorted([here.lease_id, there.lease_id])


def test_a_ledger_that_cannot_be_read_leaves_what_only_names_decide(rig: Rig) -> None:
    local, here, there = expired_on_both(rig)
    rig.ledger.path.write_bytes(b"no database" * 100)

    reaped = reap({"digitalocean": rig.cloud, "local": local}, rig.ledger, rig.clock)

    assert reaped.released == [there.machine_id]
    assert [found.machine_id for found in local.find_ours()] == [here.machine_id]
    assert "cannot be used" in reaped.why()


def tags(rig: Rig) -> list[str]:
    return sorted(rig.emulator.state.tags)


def test_a_released_lease_leaves_none_of_its_tags(rig: Rig) -> None:
    first, second = rig.take(), rig.take(night="another")
    rig.clock.sleep(60)

    rig.release_lease(first)

    kept = MachineName.parse(str(second.name))
    assert kept is not None
    assert tags(rig) == sorted([*kept.tags, "nb-like"])


def test_a_machine_is_found_and_its_tags_deleted_where_another_team_spells_them_otherwise(rig: Rig) -> None:
    rig.emulator.plant_droplet("theirs", tags=["NB"])
    rig.before_post = lambda name: rig.emulator.state.tags.update({name.tags[1].upper(): None})
    lease = rig.take()
    rig.clock.sleep(60)

    assert [one.tags[:2] for one in rig.cloud.find_ours() if one.name == lease.name] == [
        ("NB", f"nb-run:{lease.lease_id}".upper())
    ]
    assert rig.release_lease(lease).state == "released"
    assert tags(rig) == ["NB", "nb-like"]


def test_a_released_lease_leaves_no_tag_of_an_earlier_attempt(rig: Rig) -> None:
    rig.emulator.fate("vanishes")
    lease = rig.take()

    rig.release_lease(lease)

    assert (lease.attempt, tags(rig)) == (2, ["nb", "nb-like"])


def test_the_tags_of_a_lease_whose_process_died_after_its_release_are_deleted(rig: Rig) -> None:
    lease = rig.take()
    rig.emulator.reclaim_all()
    rig.ledger.mark_released(lease.lease_id)

    rig.reap()

    assert tags(rig) == ["nb-like"]


def test_the_tags_of_a_killed_night_are_deleted(rig: Rig) -> None:
    rig.take()
    rig.emulator.reclaim_all()
    rig.clock.sleep(HOUR_S + 1)

    reaped = rig.reap(ledger=rig.lost_ledger())

    assert tags(rig) == ["nb-like"]
    assert [tag.partition(":")[0] for tag in reaped.removed if ":" in tag] == ["nb-run", "nb-exp"]


def test_tags_that_are_not_applied_yet_are_kept(rig: Rig) -> None:
    rig.emulator.lag["tags"] = HOUR_S
    lease = rig.take()

    rig.reap()
    rig.clock.sleep(HOUR_S - 600)

    assert len(tags(rig)) == 4
    assert [one.tags[1] for one in rig.emulator.living("nb-")] == [f"nb-run:{lease.lease_id}"]


def test_a_tag_that_somebody_else_uses_too_is_kept(rig: Rig) -> None:
    rig.emulator.plant_droplet("theirs", tags=["nb", "nb-exp:1"])

    rig.reap()

    assert tags(rig) == ["nb", "nb-exp:1", "nb-like"]
    rig.emulator.state.droplets.popitem()
    rig.emulator.state.bill.intervals.pop()


def test_of_a_volumes_uses_the_last_one_stays_tagged(rig: Rig) -> None:
    uses = [used_tag(rig.clock.now() + timedelta(hours=number)) for number in range(3)]
    volume = rig.emulator.plant_volume(str(VolumeName("0af3", "atl1", rig.clock.now() + timedelta(hours=30))),
                                       foreign=False)  # fmt: skip
    rig.emulator.state.wear(volume.tags, ["nb", "nb-exp:1", *uses])
    rig.clock.sleep(4 * HOUR_S)

    rig.reap()

    assert volume.tags == ["nb", "nb-exp:1", uses[2]]
    assert tags(rig) == sorted([*volume.tags, "nb-like"])
    rig.clock.sleep(40 * HOUR_S)


def test_a_token_that_may_not_delete_tags_is_reported_and_blocks_no_night(rig: Rig) -> None:
    lease = rig.take()
    rig.clock.sleep(HOUR_S + 1)
    scopes = ("account:read", "droplet:read", "droplet:delete", "ssh_key:read", "ssh_key:delete", "tag:read",
              "block_storage:read", "snapshot:read")  # fmt: skip

    reaped = rig.reap(cloud=rig.cloud_with(rig.emulator.add_token(*scopes)))

    assert (reaped.released, reaped.failed_clouds) == ([lease.machine_id], set())
    assert ["lacks the scope tag:delete" in why for why in reaped.failed.values()] == [True, True, True]


@pytest.mark.parametrize("limit", ["tag_limit", "tags_per_resource"])
def test_a_machine_is_rented_without_tags_where_the_cloud_takes_no_more(rig: Rig, limit: str) -> None:
    setattr(rig.emulator.behaviour, limit, 1)

    lease = rig.take()

    assert (rig.billing(), rig.emulator.living("nb-")[0].tags) == ([lease.name], [])
    assert rig.reap(ledger=rig.lost_ledger(), everything=True).released == [lease.machine_id]
