"""The dead man's switch: without any other process, the machine deletes itself at its deadline."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pydo
import pytest

from bench.machine.cloud_init import DEADLINE_FILE, READY_FILE, DeadMan, HostKey, user_data
from bench.machine.names import MachineName
from infra.clouds.digitalocean import dead_man_switch
from infra.remote.ssh_keys import keys_of
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.emulators.sshd import NoServerError


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not what():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_machine_deletes_itself_by_a_token_that_can_do_nothing_else(tmp_path: Path) -> None:
    try:
        fleet = SshdDroplets(tmp_path / "fleet")
    except NoServerError as error:
        pytest.skip(str(error))
    with Emulator(droplets=fleet, speed=100) as cloud:
        cloud.plant_droplet("somebody-elses")
        name = MachineName("abc", 1, datetime.now(UTC) + timedelta(hours=1))
        keys = keys_of(tmp_path / "keys", "abc")
        told = DeadMan(
            program=Path(dead_man_switch.__file__).read_text().replace("LOOK_S = 15.0", "LOOK_S = 0.5"),
            endpoint=cloud.url,
            token=cloud.add_token("droplet:read", "droplet:delete"),
            machine_name=str(name),
            deadline=int(datetime.now(UTC).timestamp()) + 3600,
            ca=cloud.ca.read_text(),
        )
        boot = user_data(HostKey(keys.host_private.read_text(), keys.host_public), dead_man=told)
        body = {"name": str(name), "size": "gpu-mi300x1-192gb", "image": "gpu-amd-base", "user_data": boot}
        client: Any = pydo.Client(cloud.token, endpoint=cloud.url, connection_verify=str(cloud.ca), retry_total=0)
        droplet_id = client.droplets.create(body=body)["droplet"]["id"]
        wait_for(lambda: droplet_id in fleet.machines)
        machine = fleet.machines[droplet_id]
        wait_for((machine.home / READY_FILE).exists)
        assert machine.marked()

        (machine.home / DEADLINE_FILE).write_text(f"{int(time.time())}\n")
        wait_for(lambda: not cloud.living("nb-"))

        assert machine.marked() == []
        cloud.invariant()
