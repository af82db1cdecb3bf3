"""A cloud with foreign machines, a night in it, and the check whether anything of the night is left."""

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.machine.names import MachineName, VolumeName
from infra.leases.volumes import UNUSED_MAX
from tests.chaos.night import Place, reap_once
from tests.emulators.digitalocean import Emulator
from tests.emulators.digitalocean.world import Machines
from tests.emulators.virtual_clock import VirtualClock

PERIOD_S = 3600.0  # the reaper's
ROUND_S = 1800.0  # how long a round of it may take, settling included
FOREIGN_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEQXn8Sgy2Hd0lZEBcTpFCBUGuTdNaAXWXVMOMGIsSNh someone"


@dataclass
class World:
    """An emulator, its clock, and the folder of the night's records."""

    cloud: Emulator
    clock: VirtualClock
    place: Place

    def lose_records(self) -> None:
        """Delete every record of this computer."""
        shutil.rmtree(self.place.data, ignore_errors=True)
        (self.place.notes / "records.lost").touch()

    def deadline(self) -> datetime | None:
        """The latest deadline of anything the night rented, by the names on the bill."""
        names = [MachineName.parse(one.name) for one in self.cloud.ledger() if not one.foreign]
        ends = [name.expires_at for name in names if name is not None and name.expires_at is not None]
        keys = [MachineName.parse(key.name) for key in self.cloud.state.keys.values()]
        ends += [name.expires_at for name in keys if name is not None and name.expires_at is not None]
        return max(ends, default=None)

    def volumes(self) -> list[str]:
        """The names of our volumes that are billed now; they are kept on purpose, and no two have the same name."""
        names = [one.name for one in self.cloud.state.volumes.values() if VolumeName.parse(one.name) is not None]
        assert len(names) == len(set(names)), names
        return names

    def must_forget_volumes(self) -> None:
        """Raise AssertionError where an unused volume exists for longer than a week and a reaper's period."""
        self.clock.sleep(UNUSED_MAX.total_seconds() + PERIOD_S)
        self.reap()
        self.must_be_clean()

    def wait_for_the_deadline(self) -> None:
        """Move the clock past every deadline of the night."""
        deadline = self.deadline()
        if deadline is not None:
            self.clock.sleep((deadline - self.clock.now()).total_seconds() + 1)

    def reap(self) -> None:
        """Run one round of the reaper; its result is ignored, only the bill counts."""
        reap_once(self.place)

    def must_be_clean(self, budget_usd: float | None = None, kept: tuple[str, ...] = ()) -> None:
        """Raise AssertionError where something of ours is billed or left, or something foreign was changed."""
        self.cloud.invariant("nb", kept=kept, budget_usd=budget_usd)
        foreign = [one for one in self.cloud.ledger() if one.foreign]
        assert all(one.ended is None for one in foreign)


@contextmanager
def a_world(folder: Path, *, droplets: Machines | None = None, ssh_port: int | None = None) -> Iterator[World]:
    """A cloud whose lists lag, and that others share who use our tag and our prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = VirtualClock(folder / "clock")
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(Emulator(clock, droplets=droplets))
        cloud.plant_droplet("somebody-elses", tags=["nb", "production"])
        cloud.plant_droplet("nb-web", tags=["web"])
        cloud.plant_droplet("their-cpu", size="s-2vcpu-4gb")
        cloud.plant_key("their-laptop", FOREIGN_KEY)
        cloud.plant_volume("their-disk")
        cloud.plant_snapshot("their-image")
        cloud.lag.update(get=10.0, list=20.0, name_list=25.0, tag_list=15.0, tags=40.0, volume_list=20.0, keys=7.0)
        cloud.behaviour.gone_lag.update(list=30.0, name_list=20.0, volume_list=40.0)
        place = Place(cloud.url, cloud.ca, cloud.token, folder / "clock", folder / "data", ssh_port)
        yield World(cloud, clock, place)
