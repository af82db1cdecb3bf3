"""A scene for each cloud: the cloud against its emulator, and what the contract test does to it. One entry a cloud."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from bench.errors import CloudError, LostReplyError
from bench.machine.names import MachineName
from bench.suite.target import OWN, OwnHost
from infra.clock import Clock, SystemClock
from infra.clouds.cloud import Cloud, MachineOrder
from infra.clouds.local import LocalCloud
from infra.clouds.static import StaticCloud
from infra.remote.host import Access
from infra.remote.ssh_host import SshHost
from tests.emulators.command_cloud.account import KIND as SCRIPTS_KIND
from tests.emulators.command_cloud.account import make_account
from tests.emulators.digitalocean import Emulator
from tests.emulators.sshd import make_key, running_machine
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import DROPLETS, KIND, ONE_DROPLET, Rig

Call = Literal["rent", "release"]


@dataclass(frozen=True)
class Scene:
    """One cloud, empty but for what others have there."""

    cloud: Cloud
    clock: Clock
    kind: str  # of machine, that it offers
    lose_reply: Callable[[Call], object]  # the next such call has its effect, and its reply does not arrive
    place_another: Callable[[], Callable[[], bool]]  # a machine of others; what returns whether it is still there


def _lose_reply(cloud: Cloud, call: Call) -> None:
    """Let the next call of this adapter, which speaks to no server that could lose a reply, fail after its effect."""
    does = getattr(cloud, call)

    def once(argument: object) -> None:
        setattr(cloud, call, does)
        does(argument)
        raise LostReplyError("the reply was lost") if call == "rent" else CloudError("the reply was lost")

    setattr(cloud, call, once)


@contextmanager
def local(folder: Path) -> Iterator[Scene]:
    """Open this computer, where others have processes only."""
    cloud, theirs = LocalCloud(folder / "machines"), subprocess.Popen(["sleep", "600"])
    try:
        yield Scene(
            cloud,
            SystemClock(),
            "local",
            lambda call: _lose_reply(cloud, call),
            lambda: lambda: theirs.poll() is None,
        )
    finally:
        theirs.kill()
        theirs.wait()


@contextmanager
def own_host(folder: Path) -> Iterator[Scene]:
    """Open a host behind a real sshd, which a night of another team may hold."""
    with running_machine(folder / "far", make_key(folder / "client")) as sshd:
        access = Access(sshd.address, sshd.port, "root", folder / "client", sshd.host_public_key)
        own = OwnHost(access.user, access.address, access.port)

        def opened(prefix: str) -> StaticCloud:
            return StaticCloud(own, lambda: SshHost(access, patience_s=30, connect_s=30), SystemClock(), prefix)

        def hold() -> Callable[[], bool]:
            theirs = opened("theirs")
            name = MachineName("0af3", 1, theirs.now() + timedelta(hours=1), "theirs")
            held = theirs.rent(MachineOrder(name, theirs.offers()[0]))
            return lambda: theirs.find(held.name) == [held]

        cloud = opened("nb")
        yield Scene(cloud, SystemClock(), OWN, lambda call: _lose_reply(cloud, call), hold)


@contextmanager
def digitalocean(folder: Path) -> Iterator[Scene]:
    """Open an account that others rent from too."""
    clock = VirtualClock(folder / "clock")
    with Emulator(clock, by_description=False) as emulator:
        paths = {"rent": ("POST", DROPLETS), "release": ("DELETE", ONE_DROPLET)}

        def place() -> Callable[[], bool]:
            theirs = emulator.plant_droplet("somebody-elses", tags=["nb-like"])
            return lambda: theirs in emulator.living()

        yield Scene(
            Rig(emulator, clock, folder).cloud,
            clock,
            KIND,
            lambda call: emulator.fault(*paths[call], phase="close_after"),
            place,
        )


@contextmanager
def command(folder: Path) -> Iterator[Scene]:
    """Open the account of a team's own scripts, which others rent from too."""
    clock = VirtualClock(folder / "clock")
    account = make_account(folder / "scripts", folder / "clock", others=())

    def place() -> Callable[[], bool]:
        theirs = account.plant("somebody-elses")
        return lambda: theirs in [one["id"] for one in account.state()["machines"] if one["ended_s"] is None]

    yield Scene(account.cloud(clock), clock, SCRIPTS_KIND, lambda call: account.fault(**{call: "fail after"}), place)


SCENES: dict[str, Callable[[Path], AbstractContextManager[Scene]]] = {
    "local": local,
    "ssh": own_host,
    "digitalocean": digitalocean,
    "command": command,
}
