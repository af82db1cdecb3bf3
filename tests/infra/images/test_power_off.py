"""A machine is switched off before its disk is copied: rows 25 and 26 of the fault table."""

from collections.abc import Iterator

import pytest

from bench.errors import LeaseError
from infra.images.power_off import power_off
from infra.ledger.lease import Lease
from tests.emulators.digitalocean.faults import FOR_EVER
from tests.infra.rented import ONE_DROPLET, Rig

ACTIONS = ONE_DROPLET + "/actions"


@pytest.fixture
def lease(rig: Rig) -> Iterator[Lease]:
    yield (lease := rig.take())
    rig.release_lease(lease)


def status(rig: Rig, lease: Lease) -> str:
    found = rig.cloud.find_by_id(str(lease.machine_id))
    return "gone" if found is None else found.status


def asked_for(rig: Rig) -> int:
    return sum(request.method == "POST" and "/actions" in request.path for request in rig.emulator.requests())


def test_a_machine_is_shut_down(rig: Rig, lease: Lease) -> None:
    power_off(rig.cloud, rig.clock, str(lease.machine_id))

    assert (status(rig, lease), asked_for(rig)) == ("off", 1)
    assert rig.explain_loss(lease) == f"machine {lease.machine_id} is switched off"


def test_row_25_a_machine_that_does_not_shut_down_is_powered_off(rig: Rig, lease: Lease) -> None:
    rig.emulator.behaviour.ignores_shutdown = True

    power_off(rig.cloud, rig.clock, str(lease.machine_id), say=rig.said.append)

    assert (status(rig, lease), asked_for(rig)) == ("off", 2)
    assert any("is still on" in words for words in rig.said)


@pytest.mark.parametrize("phase", ["before", "close", "after", "close_after", "silence_after"])
def test_row_26_a_lost_reply_or_another_event_is_retried(rig: Rig, lease: Lease, phase: str) -> None:
    rig.emulator.fault("POST", ACTIONS, phase=phase)

    power_off(rig.cloud, rig.clock, str(lease.machine_id))

    assert status(rig, lease) == "off"


def test_a_machine_that_stays_on_is_reported_and_can_be_released(rig: Rig, lease: Lease) -> None:
    rig.emulator.fault("POST", ACTIONS, phase="before", times=FOR_EVER)

    with pytest.raises(LeaseError, match="cannot be switched off"):
        power_off(rig.cloud, rig.clock, str(lease.machine_id))
