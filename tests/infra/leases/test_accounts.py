"""Only the account that a machine was rented in can show that it is gone."""

import sqlite3
from contextlib import closing

import pytest

from bench.errors import AccountError
from infra.leases.release import explain_loss
from infra.ledger.volumes import VolumeBook
from tests.infra.rented import HOUR_S, Rig

TEAM, OTHER = "5df3e3004a17e242b7c20ca6c9fc25b701a47ece", "0ddba11"


def test_a_token_of_another_account_names_both_accounts_and_the_lease_stays_open(rig: Rig) -> None:
    lease = rig.take()
    rig.move_to_a_dead_process()

    reaped = rig.reap(cloud=rig.cloud_with(rig.emulator.add_account(OTHER)))

    assert (reaped.released, list(reaped.failed)) == ([], [lease.machine_id])
    assert f"was rented in account {TEAM} of digitalocean, and the token is of account {OTHER}" in reaped.why()
    assert (rig.ledger.lease(lease.lease_id).state, rig.billing()) == ("held", [lease.name])
    assert rig.reap().released == [lease.machine_id]
    rig.emulator.invariant()


def test_a_token_without_the_scope_for_the_account_closes_no_lease_that_names_one(rig: Rig) -> None:
    lease = rig.take()
    scoped = rig.cloud_with(rig.emulator.add_token("droplet:read", "droplet:delete"))

    with pytest.raises(AccountError, match="the token is of an unknown account: it lacks the scope account:read"):
        rig.release_lease(lease, scoped)

    assert rig.ledger.lease(lease.lease_id).state == "held"


def test_a_lease_of_an_earlier_version_names_no_account_and_is_released_as_before(rig: Rig) -> None:
    lease = rig.take()
    with closing(sqlite3.connect(rig.ledger.path)) as connection, connection:
        connection.execute("UPDATE leases SET account = NULL")

    assert rig.release_lease(lease).state == "released"
    rig.emulator.invariant()


def test_a_machine_that_another_account_does_not_list_is_not_called_lost(rig: Rig) -> None:
    lease = rig.take()
    cloud = rig.cloud_with(rig.emulator.add_account(OTHER))

    assert explain_loss(cloud, rig.clock, lease) is None


def test_the_record_of_a_volume_is_closed_in_its_own_account_only(rig: Rig) -> None:
    book = VolumeBook(rig.ledger.path, rig.clock)
    book.intend("digitalocean", "nb-vol-abc-atl1-x1", 20, TEAM)
    rig.clock.sleep(HOUR_S)

    rig.reap(cloud=rig.cloud_with(rig.emulator.add_account(OTHER)))
    in_another = len(book.open_volumes())
    rig.reap()

    assert (in_another, book.open_volumes()) == (1, [])
