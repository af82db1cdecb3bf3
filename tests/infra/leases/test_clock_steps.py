"""A step of this computer's clock while it rents or releases: nothing living is given up, nothing is believed gone."""

import os

import pytest

from bench.errors import NoCapacityError
from infra.leases.acquire import take_lease
from infra.leases.reaper import Reaped
from infra.leases.release import ReleaseTarget, destroy
from infra.leases.watchdog import GRACE_S, LOOK_EVERY_S, WatchedLease, watch
from infra.ledger.ledger import Ledger
from infra.processes.identity import own_start
from tests.infra.rented import HOUR_S, KIND, Rig, lease_request
from tests.stepped_clock import STEPS_S, SteppedMidway


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_machine_that_boots_slowly_is_kept(rig: Rig, by_s: int) -> None:
    rig.emulator.behaviour.delays.create_s = 900.0
    clock = SteppedMidway(rig.clock, by_s, at_sleep=2)

    lease = take_lease(rig.cloud, rig.ledger, clock, lease_request(), night="2026-11-21")

    assert (lease.state, lease.attempt, rig.posts()) == ("held", 1, 1)


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_machine_is_gone_only_after_the_clouds_settle_time(rig: Rig, by_s: int) -> None:
    lease = rig.take()
    began_s = rig.clock.monotonic()
    target = ReleaseTarget({str(lease.machine_id)}, lease.name)

    left = destroy(rig.cloud, SteppedMidway(rig.clock, by_s, at_sleep=2), [target])

    assert left == []
    assert rig.cloud.settle_s <= rig.clock.monotonic() - began_s < 900


@pytest.mark.parametrize("by_s", STEPS_S)
def test_capacity_is_waited_for_as_long_as_was_asked(rig: Rig, by_s: int) -> None:
    rig.emulator.sell(KIND, available=False)
    began_s, request = rig.clock.monotonic(), lease_request(patience_s=600.0)

    with pytest.raises(NoCapacityError):
        take_lease(rig.cloud, rig.ledger, SteppedMidway(rig.clock, by_s, at_sleep=1), request, night="2026-11-21")

    assert 200 < rig.clock.monotonic() - began_s <= 600


def reap_with_a_clock_off(rig: Rig, by_s: int, *, has_records: bool) -> Reaped:
    """A round of a reaper whose wall clock is off, such as a colleague's, who has no records of ours."""
    clock = SteppedMidway(rig.clock, by_s, at_sleep=0)
    ledger = Ledger(rig.ledger.path if has_records else rig.lost_ledger().path, clock)
    return rig.reap(cloud=rig.cloud_with(clock=clock), clock=clock, ledger=ledger)


@pytest.mark.parametrize("has_records", [True, False])
@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_reaper_whose_clock_is_off_releases_at_the_expiry_by_the_clouds_clock_and_not_before(
    rig: Rig, by_s: int, has_records: bool
) -> None:
    lease = rig.take()
    rig.move_to_another_host(lease)

    before = reap_with_a_clock_off(rig, by_s, has_records=has_records)
    living = rig.billing()
    rig.clock.sleep(HOUR_S + 60)
    after = reap_with_a_clock_off(rig, by_s, has_records=has_records)

    assert (before.released, before.failed, living) == ([], {}, [lease.name])
    assert (after.released, rig.billing()) == ([lease.machine_id], [])


@pytest.mark.parametrize("by_s", STEPS_S)
def test_a_lease_expires_by_the_clouds_clock_wherever_the_night_rents_and_its_watchdog_counts_the_same_time(
    rig: Rig, by_s: int
) -> None:
    clock = SteppedMidway(rig.clock, by_s, at_sleep=0)
    ledger = Ledger(rig.ledger.path, clock)
    began_s = rig.clock.monotonic()
    lease = take_lease(rig.cloud_with(clock=clock), ledger, clock, lease_request(), night="2026-11-21")
    taken_s = rig.clock.monotonic()
    released_s: list[float] = []

    def release(_attempt: int | None) -> None:
        released_s.append(rig.clock.monotonic())
        ledger.mark_released(lease.lease_id)

    watch(WatchedLease(ledger.path, lease.lease_id, os.getpid(), own_start()), clock, release, rig.said.append)

    assert abs((lease.expires_at - rig.clock.now()).total_seconds() + rig.clock.monotonic() - began_s - HOUR_S) < 60
    assert HOUR_S + GRACE_S - 2 <= released_s[0] - began_s <= HOUR_S + GRACE_S + LOOK_EVERY_S + taken_s - began_s


def test_nothing_expires_at_a_cloud_that_does_not_state_the_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = rig.take()
    rig.move_to_another_host(lease)
    rig.clock.sleep(2 * HOUR_S)
    cloud = rig.cloud_with()
    monkeypatch.setattr(cloud, "now", lambda: None)

    reaped = rig.reap(cloud=cloud)

    assert (reaped.released, rig.billing()) == ([], [lease.name])
    assert "have no Date header, so it is unknown what has expired" in reaped.why()
