"""A step of this computer's clock while it rents or releases: nothing living is given up, nothing is believed gone."""

import pytest

from bench.errors import NoCapacityError
from infra.leases.acquire import take_lease
from infra.leases.release import ReleaseTarget, destroy
from tests.infra.rented import KIND, Rig, lease_request
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
