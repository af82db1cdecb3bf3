"""Droplets that are machines: reached by ssh, prepared by their user_data, gone with all they ran."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pydo
import pytest

from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.emulators.sshd import PLEASE_WAIT, NoServerError, make_key
from tests.emulators.virtual_clock import VirtualClock


@dataclass
class Bench:
    """An emulator, its fleet, its clock, and a key that the account knows."""

    cloud: Emulator
    fleet: SshdDroplets
    clock: VirtualClock
    folder: Path
    key_id: int
    client: Any

    def rent(self, **more: Any) -> dict[str, Any]:
        """An active droplet, as the cloud shows it."""
        body = {"name": "nb-1-a1-x2", "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "region": "atl1"}
        made = self.client.droplets.create(body=body | {"ssh_keys": [self.key_id]} | more)
        self.clock.sleep(60)
        droplet: dict[str, Any] = self.client.droplets.get(made["droplet"]["id"])["droplet"]
        return droplet

    def ssh(self, droplet: dict[str, Any], command: str, known_hosts: str | None = None) -> str:
        """What a command prints on a droplet, and why it failed."""
        (known,) = (one["ip_address"] for one in droplet["networks"]["v4"] if one["type"] == "public")
        hosts = self.folder / "known_hosts"
        hosts.write_text(f"[{known}]:{self.fleet.port} {known_hosts}\n" if known_hosts else "")
        checking = "yes" if known_hosts else "no"
        argv = ["ssh", "-F", "none", "-p", str(self.fleet.port), "-i", str(self.folder / "key"), "-o", "BatchMode=yes"]
        argv += ["-o", f"StrictHostKeyChecking={checking}", "-o", f"UserKnownHostsFile={hosts}", "-o", "LogLevel=ERROR"]
        done = subprocess.run([*argv, known, command], capture_output=True, text=True, check=False, timeout=300)
        return done.stdout + done.stderr


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    clock = VirtualClock(tmp_path / "clock")
    try:
        fleet = SshdDroplets(tmp_path / "fleet")
    except NoServerError as error:
        pytest.skip(str(error))
    public = make_key(tmp_path / "key")
    with Emulator(clock, droplets=fleet) as cloud:
        client: Any = pydo.Client(cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), retry_total=0)
        key = client.ssh_keys.create(body={"name": "nb-key", "public_key": public})["ssh_key"]
        yield Bench(cloud, fleet, clock, tmp_path, key["id"], client)
    assert not fleet.machines


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def boot(**more: Any) -> str:
    return "#cloud-config\n" + json.dumps(more)


def test_an_active_droplet_answers_please_wait_and_then_runs_commands_in_its_own_home(bench: Bench) -> None:
    bench.fleet.please_wait_s = 1.5
    droplet = bench.rent()

    early = bench.ssh(droplet, "echo really")
    wait_for(lambda: "really" in bench.ssh(droplet, "echo really"))

    assert PLEASE_WAIT in early
    home = bench.fleet.machines[droplet["id"]].home
    assert bench.ssh(droplet, "echo $HOME; pwd").split() == [str(home), str(home)]


def test_the_first_boot_installs_the_host_key_and_runs_its_commands(bench: Bench) -> None:
    public = make_key(bench.folder / "host")
    keys = {"ed25519_private": (bench.folder / "host").read_text(), "ed25519_public": public}
    commands = ['mkdir -p "${HOME:-/root}/nightbench"', ["touch", "nightbench/ready"]]
    droplet = bench.rent(user_data=boot(ssh_keys=keys, runcmd=commands))
    home = bench.fleet.machines[droplet["id"]].home

    wait_for((home / "nightbench/ready").exists)

    assert bench.ssh(droplet, "ls nightbench", known_hosts=public).strip() == "ready"
    other = make_key(bench.folder / "other")
    assert "verification failed" in bench.ssh(droplet, "ls", known_hosts=other)


def test_without_its_key_nobody_gets_in(bench: Bench) -> None:
    bench.fleet.please_wait_s = 0
    droplet = bench.rent(ssh_keys=[])

    assert "Permission denied" in bench.ssh(droplet, "echo really")


def test_two_droplets_have_two_addresses_and_two_disks(bench: Bench) -> None:
    first, second = bench.rent(name="nb-1"), bench.rent(name="nb-2")
    wait_for(lambda: PLEASE_WAIT not in bench.ssh(first, "touch mine"))
    wait_for(lambda: PLEASE_WAIT not in bench.ssh(second, "ls"))

    assert first["networks"]["v4"] != second["networks"]["v4"]
    assert "mine" in bench.ssh(first, "ls")
    assert "mine" not in bench.ssh(second, "ls")


def test_a_deleted_droplet_takes_along_all_it_ran_and_its_disk(bench: Bench) -> None:
    droplet = bench.rent(user_data=boot(runcmd=["setsid sleep 611 </dev/null >/dev/null 2>&1 &"]))
    machine = bench.fleet.machines[droplet["id"]]
    wait_for(lambda: PLEASE_WAIT not in bench.ssh(droplet, "setsid sleep 612 </dev/null >/dev/null 2>&1 & true"))
    wait_for(lambda: len([one for one in machine.marked() if one.name() == "sleep"]) == 2)
    left = machine.marked()

    bench.client.droplets.destroy(droplet["id"])

    assert not [one for one in left if psutil.pid_exists(one.pid) and one.status() != psutil.STATUS_ZOMBIE]
    assert not machine.folder.exists()
    assert "refused" in bench.ssh(droplet, "echo really")


def test_a_droplet_that_is_off_answers_nobody_and_keeps_its_disk(bench: Bench) -> None:
    droplet = bench.rent()
    wait_for(lambda: PLEASE_WAIT not in bench.ssh(droplet, "touch kept"))

    bench.client.droplet_actions.post(droplet["id"], body={"type": "power_off"})
    bench.clock.sleep(30)
    bench.client.droplets.get(droplet["id"])
    off = bench.ssh(droplet, "ls")
    bench.client.droplet_actions.post(droplet["id"], body={"type": "power_on"})
    bench.clock.sleep(30)
    bench.client.droplets.get(droplet["id"])

    assert "refused" in off
    assert "kept" in bench.ssh(droplet, "ls")


def test_a_snapshot_holds_the_disk_and_boots_with_it(bench: Bench) -> None:
    droplet = bench.rent()
    wait_for(lambda: PLEASE_WAIT not in bench.ssh(droplet, "touch golden"))
    bench.client.droplet_actions.post(droplet["id"], body={"type": "snapshot", "name": "nb-golden"})
    bench.clock.sleep(3600)
    (image,) = bench.client.images.list(private=True)["images"]

    second = bench.rent(image=image["id"], name="nb-2")

    wait_for(lambda: "golden" in bench.ssh(second, "ls"))


def test_a_spot_droplet_is_taken_away_under_a_silent_client_by_the_wall_s_clock(tmp_path: Path) -> None:
    try:
        fleet = SshdDroplets(tmp_path / "fleet")
    except NoServerError as error:
        pytest.skip(str(error))
    with Emulator(droplets=fleet, speed=1000) as cloud:
        client: Any = pydo.Client(cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), retry_total=0)
        body = {"name": "nb-1", "size": "gpu-mi355x1-288gb-spot", "image": "gpu-amd-base", "region": "mem1"}
        droplet_id = client.droplets.create(body=body)["droplet"]["id"]
        wait_for(lambda: droplet_id in fleet.machines)

        cloud.reclaim(droplet_id, after_s=0.3)

        wait_for(lambda: not fleet.machines)
        assert cloud.living() == []


def test_the_fleet_s_network_is_its_own(bench: Bench) -> None:
    droplet = bench.rent()

    address = next(one["ip_address"] for one in droplet["networks"]["v4"] if one["type"] == "public")

    assert address.startswith(f"127.{os.getpid() % 250 + 2}.")
