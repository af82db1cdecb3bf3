"""What fails on this computer while `provision` runs: one machine is rented, and it is the one that is used."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from bench.record import NightRecord
from infra.agent.operations import MachinePaths
from infra.ledger.lease import Lease
from infra.loadgen.suite_file import make_night
from tasks.machine import provision, reach, teardown
from tests.flows.conftest import NightFixture
from tests.flows.renting import Account, renting

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_api")]


@pytest.fixture
def account(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with renting(tmp_path, house) as account:
        for name, value in account.settings.items():
            monkeypatch.setenv(name, value)
        yield account


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room_for_the_report(_account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is up and in the ledger; what the night's folder should say of it can never be written."""

    def write(*_asked: object) -> None:
        raise full_disk()

    monkeypatch.setattr("infra.leases.lease_reports.store.write_json", write)


def no_room_in_the_ledger(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud's answer is lost, and once the machine is found the ledger fails for as long as it is there."""
    account.emulator.fault("POST", "/v2/droplets", phase="close_after")
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def open_(path: str | Path, *given: Any, **named: Any) -> sqlite3.Connection:
        if len(account.names()) == 1 and account.emulator.living("nb"):
            raise sqlite3.OperationalError("database or disk is full")
        return connect(path, *given, **named)

    monkeypatch.setattr("infra.ledger.ledger.sqlite3.connect", open_)


@pytest.mark.parametrize(
    ("trouble", "outcomes"),
    [(no_room_for_the_report, ["rented"]), (no_room_in_the_ledger, ["unanswered", "rented"])],
    ids=["unreported", "undone"],
)
def test_a_provision_that_fails_on_this_computer_ends_with_one_machine_that_is_used(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Account, pytest.MonkeyPatch], None],
    outcomes: list[str],
) -> None:
    trouble(account, monkeypatch)
    night = make_night(account.house.suite, "digitalocean", poc=True)

    @flow
    def use_one_machine(night: NightRecord) -> tuple[Lease, list[str], MachinePaths]:
        lease = provision(night, None)
        try:
            living = [str(droplet.droplet_id) for droplet in account.emulator.living("nb")]
            return lease, living, reach(lease, night.suite.machine)
        finally:
            teardown(lease)

    lease, living, site = use_one_machine(night)

    assert living == [lease.machine_id]
    assert site.data.is_relative_to(account.droplets.folder / living[0])
    assert [attempt.outcome for attempt in account.ledger().attempts()] == outcomes
    assert len(account.emulator.requests("POST", "/v2/droplets")) == len(outcomes)
    account.judge()
