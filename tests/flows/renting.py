"""A house whose suite asks for machines of an emulated cloud: each is a real sshd with the truth server as engine."""

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.clock import Clock
from infra.ledger.ledger import Ledger
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.sshd_droplets import SshdDroplets
from tests.flows.conftest import NightFixture

KIND, OTHER_KIND = "gpu-mi300x1-192gb", "gpu-mi325x1-256gb"
SPEED = 100.0
MACHINE = f"""
[machine]
kind = "{KIND}"
regions = ["atl1"]
usd_per_hour_max = 4.0
budget_usd = 20.0
lease_minutes = 60
alternatives = [{{ kind = "{OTHER_KIND}", region = "tor1" }}]

[model]"""

MACHINES = f"""
[[machines]]
name = "mi300x"
kind = "{KIND}"
regions = ["atl1"]
lease_minutes = 60

[[machines]]
name = "mi325x"
kind = "{OTHER_KIND}"
regions = ["tor1"]
lease_minutes = 60

[model]"""


@dataclass(frozen=True)
class Account:
    """A cloud with room for us, and a data folder whose suite asks for its machines."""

    emulator: Emulator
    droplets: SshdDroplets
    house: NightFixture
    image: Path
    settings: dict[str, str]  # what a process of ours must have in its environment to rent there

    def install(self, engine: str) -> None:
        """Let machines that are made from now on have this engine."""
        self.image.write_text(f"export NIGHTBENCH_VLLM_EXECUTABLE={shlex.quote(engine)}\n")

    def write_suite(self, *, repeats: int = 1, ttft_ms: int = 20) -> Path:
        """The house's suite, on a machine of this cloud."""
        suite = self.house.write_suite(repeats=repeats, ttft_ms=ttft_ms)
        suite.write_text(suite.read_text().replace("\n[model]", MACHINE, 1))
        return suite

    def write_comparison(self, *, ttft_ms: int = 20) -> Path:
        """The house's suite, on two kinds of machine of this cloud."""
        suite = self.house.write_suite(ttft_ms=ttft_ms)
        suite.write_text(
            suite.read_text().replace("seed = 7", "seed = 7\nbudget_usd = 20.0").replace("\n[model]", MACHINES, 1)
        )
        return suite

    def names(self) -> list[str]:
        """Every machine there ever was under our prefix."""
        return [one.name for one in self.emulator.ledger() if one.kind == "droplet" and one.name.startswith("nb-")]

    def ledger(self) -> Ledger:
        """What we know of our machines."""
        return Ledger(self.house.data / "ledger.sqlite")

    def records(self) -> list[dict[str, Any]]:
        """Every run record there is."""
        return [json.loads(path.read_bytes()) for path in self.house.data.glob("runs/*/*/*/record.json")]

    def judge(self, *kept: str) -> None:
        self.emulator.invariant(kept=kept)  # what was billed says nothing here: the cloud's clock is SPEED times ours
        left = self.house.leftovers()
        assert left == [], left
        assert list((self.house.data / "keys").glob("*")) == []
        assert set(self.names()) <= {attempt.name for attempt in self.ledger().attempts()}


@contextmanager
def renting(folder: Path, house: NightFixture, clock: Clock | None = None) -> Iterator[Account]:
    """An account for this house; whoever starts a process of it by hand gives it the account's settings.

    `clock` is the cloud's, which bills by it; None: that of the wall.
    """
    image = folder / "image.env"

    def furnish(home: Path) -> None:
        (home / "nightbench").mkdir()
        shutil.copy(image, home / "nightbench" / "host.env")

    droplets = SshdDroplets(folder / "droplets", furnish=furnish)
    with Emulator(clock, speed=SPEED, droplets=droplets) as emulator:
        emulator.plant_droplet("somebody-elses")
        emulator.behaviour.delays.snapshot_s_per_gb /= SPEED  # half an hour of the cloud's would be half a minute here
        settings = {
            "NIGHTBENCH_DO_TOKEN": emulator.token,
            "NIGHTBENCH_ACCEPT_RISK": "1",  # tests of the second net take it away
            "NIGHTBENCH_DO_ENDPOINT": emulator.url,
            "NIGHTBENCH_DO_CA": str(emulator.ca),
            "NIGHTBENCH_DO_SETTLE_S": "2",
            "NIGHTBENCH_DO_SSH_PORT": str(droplets.port),
            "NIGHTBENCH_MACHINE_PYTHON": sys.executable,
            "NIGHTBENCH_VLLM_EXECUTABLE": "/nowhere/vllm",  # here there is none: only the machines have an engine
        }
        account = Account(emulator, droplets, house, image, settings)
        account.install(house.environment["NIGHTBENCH_VLLM_EXECUTABLE"])
        house.environment.update(settings)
        account.write_suite()
        yield account


def is_under_load(account: Account) -> bool:
    """Whether a machine measures: the engine and the load on it run there."""
    return bool(list(account.droplets.folder.glob("*/home/**/.partial-*/load/progress.json")))


def has_been_tidied(account: Account) -> bool:
    """Whether the release and all that follows it is done: the lease's report is written, and then its key deleted."""
    return not list((account.house.data / "keys").glob("*")) and not account.house.leftovers()
