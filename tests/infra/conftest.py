from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import BUDGET_USD, Rig


@pytest.fixture
def rig(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """An account with somebody else's machines in it; whatever a test does, nothing of ours may be left in the end."""
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock, by_description=False) as emulator:
        emulator.plant_droplet("somebody-elses")
        emulator.plant_droplet("web-1", size="s-2vcpu-4gb", tags=["nb-like"])
        yield (rig := Rig(emulator, clock, tmp_path, read_timeout_s=0.4 if "silen" in request.node.name else 10.0))
        rig.quiet_down()
        emulator.invariant(budget_usd=BUDGET_USD)
        assert emulator.judge.unknown == set()
