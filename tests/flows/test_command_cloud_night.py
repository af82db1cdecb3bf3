"""A whole night of Prefect on a machine that a team's scripts rent, which is a real sshd."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.emulators.command_cloud.account import KIND, Account, make_account
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.renting import MACHINE
from warehouse.lake.query import run_sql

if TYPE_CHECKING:
    from tests.emulators.command_cloud.program import State
    from tests.emulators.digitalocean.resources import Droplet

pytestmark = [pytest.mark.prefect, pytest.mark.matrix]
LOOK_S = 0.1
NEVER_S = 1e9


class Hypervisor(threading.Thread):
    """Brings up what the scripts rent, as its user data asks, and takes down what they release."""

    def __init__(self, account: Account, machines: SshdDroplets) -> None:
        super().__init__(daemon=True)
        self._account, self._machines = account, machines
        self._up: dict[str, Droplet] = {}
        self.is_over = threading.Event()
        account.set(boot_s=NEVER_S)  # a machine has no address until its sshd runs

    def run(self) -> None:
        while not self.is_over.wait(LOOK_S):
            state = self._account.state()
            for one in state["machines"]:
                if one["id"] in self._up and one["ended_s"] is not None:
                    self._machines.stop(self._up[one["id"]])
                elif one["id"] not in self._up and not one["foreign"]:
                    self._boot(one["id"], state["given"]["rent"]["user_data"])

    def _boot(self, machine_id: str, user_data: str) -> None:
        asked = SimpleNamespace(droplet_id=int(machine_id), user_data=user_data, image=SimpleNamespace(image_id=0))
        self._up[machine_id] = droplet = cast("Droplet", asked)
        address = self._machines.start(droplet, [])

        def is_up(state: "State") -> None:
            next(one for one in state["machines"] if one["id"] == machine_id)["address"] = address
            state["boot_s"] = 0.0

        self._account.change(is_up)


@pytest.fixture
def account(house: NightFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    def furnish(home: Path) -> None:
        (home / "nightbench").mkdir()
        engine = house.environment["NIGHTBENCH_VLLM_EXECUTABLE"]
        (home / "nightbench" / "host.env").write_text(f"export NIGHTBENCH_VLLM_EXECUTABLE={engine}\n")

    machines, made = SshdDroplets(tmp_path / "machines", furnish=furnish), make_account(tmp_path / "scripts")
    settings = {
        "NIGHTBENCH_COMMAND_CLOUD": str(made.scripts),
        "NIGHTBENCH_COMMAND_EXPIRES": "1",
        "NIGHTBENCH_COMMAND_LAG_S": "0",
        "NIGHTBENCH_COMMAND_TIMEOUT_S": "10",
        "NIGHTBENCH_COMMAND_SSH_PORT": str(machines.port),
        "NIGHTBENCH_MACHINE_PYTHON": sys.executable,
        "NIGHTBENCH_VLLM_EXECUTABLE": "/nowhere/vllm",  # only the machine has an engine
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    hypervisor = Hypervisor(made, machines)
    hypervisor.start()
    yield made
    hypervisor.is_over.set()
    hypervisor.join()
    for machine in machines.machines.values():
        machine.stop()


@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_a_night_on_a_machine_of_a_teams_scripts_ends_with_rows_and_gives_it_back(
    account: Account, house: NightFixture
) -> None:
    text = house.write_suite().read_text().replace("\n[model]", MACHINE, 1)
    house.suite.write_text(text.replace('regions = ["atl1"]\n', "").replace(', region = "tor1"', ""))

    summary = run_nightly(house, "command")

    rows = run_sql(house.data, "SELECT outcome FROM measurements").rows
    assert rows == (("measured",), ("measured",))
    assert set(summary.verdicts) <= {"accepted", "suspect"}
    ((cloud, kind, usd),) = run_sql(house.data, "SELECT cloud, kind, usd FROM leases").rows
    assert (cloud, kind, usd > 0) == ("command", KIND, True)
    account.must_be_clean()
    assert account.state()["calls"]["rent"] == 1
    assert house.leftovers() == []
    assert list((house.data / "keys").glob("*")) == []
