"""How the settings open the command cloud, and how its machines are reached."""

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.errors import CloudDeniedError, UsageError
from flows.cli import app
from infra.bootstrap import (
    access_of,
    cloud_named,
    clouds,
    if_computer_dies,
    require_second_net,
    unguarded,
)
from infra.clock import SystemClock
from infra.clouds.command.cloud import CommandCloud
from infra.leases.acquire import take_lease
from infra.leases.offers import Choice, LeaseRequest
from infra.leases.watchdog import NEEDED, PATHS
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.processes.environment import child_environment
from infra.processes.own_program import from_any_folder
from infra.settings import Settings
from tests.emulators.command_cloud.account import KIND, Account, make_account

TARGET = "command"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEQXn8Sgy2Hd0lZEBcTpFCBUGuTdNaAXWXVMOMGIsSNh"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    account = make_account(tmp_path / "scripts")
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NIGHTBENCH_COMMAND_CLOUD", str(account.scripts))
    return account


def lease_of(account: Account, tmp_path: Path) -> Lease:
    wanted = LeaseRequest((Choice(KIND),), minutes=60)
    (tmp_path / "data").mkdir()
    ledger = Ledger(tmp_path / "data" / "ledger.sqlite")
    return take_lease(account.cloud(SystemClock()), ledger, SystemClock(), wanted, night="2026-01-01")


def test_the_settings_name_the_scripts_and_their_limits(account: Account) -> None:
    cloud = cloud_named(Settings(), TARGET)

    assert isinstance(cloud, CommandCloud)
    assert cloud.settle_s == 120.0  # 60 s of lag, and 60 s in which a `rent` whose caller was killed may go on
    assert [one.kind for one in clouds(Settings())[TARGET].offers()] == [KIND]
    assert account.state()["calls"] == {"offers": 1}


def test_without_a_folder_of_scripts_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no scripts for command: set NIGHTBENCH_COMMAND_CLOUD to their folder"):
        cloud_named(Settings(), TARGET)
    monkeypatch.setenv("NIGHTBENCH_COMMAND_CLOUD", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="nowhere is not a folder"):
        cloud_named(Settings(), TARGET)

    assert TARGET not in clouds(Settings())


def test_a_lease_that_a_lost_ledger_lacks_stays_open_while_the_folder_of_scripts_is_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NIGHTBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("NIGHTBENCH_COMMAND_CLOUD", str(tmp_path / "not mounted"))

    done = CliRunner().invoke(app, ["reap", "--lease", "0a1b"])

    assert isinstance(done.exception, CloudDeniedError)
    assert str(tmp_path / "not mounted" / "list") in str(done.exception)


@pytest.mark.usefixtures("account")
def test_nothing_is_rented_unless_the_scripts_cloud_ends_a_machine_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"without it: let the `rent` script .* NIGHTBENCH_COMMAND_EXPIRES=1, or acc"):
        require_second_net(Settings(), TARGET)
    assert "NIGHTBENCH_COMMAND_EXPIRES=1" in str(if_computer_dies(Settings(), TARGET, 60, 2.0))
    limit = unguarded(Settings(), TARGET)
    assert limit is not None
    assert "NIGHTBENCH_COMMAND_EXPIRES=1, or accept the risk" in str(limit.why_refused(2.0))
    assert "doctor --fix" not in str(limit.why_refused(2.0))

    monkeypatch.setenv("NIGHTBENCH_COMMAND_EXPIRES", "1")

    assert unguarded(Settings(), TARGET) is None
    assert "the machine deletes itself at its lease's expiry, at most 2.00 USD" in str(
        if_computer_dies(Settings(), TARGET, 60, 2.0)
    )


def test_a_machine_is_reached_as_root_with_the_keys_of_its_user_data(account: Account, tmp_path: Path) -> None:
    lease = lease_of(account, tmp_path)

    access = access_of(Settings(command_ssh_port=2222), lease)

    assert (access.address, access.port, access.user) == ("192.0.2.9", 2222, "root")
    assert access.private_key == tmp_path / "data" / "keys" / lease.lease_id / "client"
    assert lease.is_free_to_change


def test_a_node_of_a_cluster_is_reached_as_a_host_of_ones_own_and_not_changed(account: Account, tmp_path: Path) -> None:
    lease = dataclasses.replace(lease_of(account, tmp_path), address="ssh:me@node17:22")
    key, known = tmp_path / "id", tmp_path / "known_hosts"
    key.touch()
    known.write_text(f"node17 {HOST_KEY}\n")

    access = access_of(Settings(ssh_key=key, ssh_known_hosts=known), lease)

    assert (access.address, access.port, access.user, access.private_key) == ("node17", 22, "me", key)
    assert (lease.where.is_rented, lease.is_free_to_change) == (True, False)


@pytest.mark.usefixtures("account")
def test_the_scripts_get_their_settings_and_no_other_secret(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTBENCH_COMMAND_TOKEN", "theirs")
    monkeypatch.setenv("NIGHTBENCH_DO_TOKEN", "ours")
    (account.scripts / "list").write_text(f"#!/bin/sh\nenv > {tmp_path}/env\necho '{{\"machines\": []}}'\n")

    cloud_named(Settings(), TARGET).find_ours()

    found = (tmp_path / "env").read_text().splitlines()
    assert "NIGHTBENCH_COMMAND_TOKEN=theirs" in found
    assert [line for line in found if "ours" in line] == []


def test_the_watchdog_finds_the_scripts_from_any_folder(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTBENCH_COMMAND_TOKEN", "theirs")
    monkeypatch.setenv("NIGHTBENCH_COMMAND_CLOUD", account.scripts.name)
    monkeypatch.chdir(account.scripts.parent)

    environment = from_any_folder(child_environment(also=NEEDED), PATHS)

    passed = {name: environment.get(name) for name in ("NIGHTBENCH_COMMAND_CLOUD", "NIGHTBENCH_COMMAND_TOKEN")}
    assert list(passed.values()) == [str(account.scripts), "theirs"]
