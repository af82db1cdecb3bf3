"""Where a storm's night runs, and what it does there."""

import signal
from dataclasses import dataclass, replace
from pathlib import Path

from infra.leases.offers import Choice, LeaseRequest
from tests.chaos.elsewhere import HERE, Elsewhere

LEASE_MINUTES = 120.0
HostFault = tuple[int, str]  # at a night's n-th command on its own host: "before", "after" or "kill"
NIGHT = "2026-11-21T200000Z"
# Every write is synced, and /proc is copied for each round of a reaper, which a folder in memory makes cheap.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
CRASH = "crash.log"  # a traceback of an error that is none of ours


@dataclass(frozen=True)
class Place:
    """The surroundings of a night: the cloud, the clock, the data folder, and the SSH port of real machines."""

    url: str
    ca: Path
    token: str
    clock: Path
    data: Path
    ssh_port: int | None = None
    scripts: Path | None = None  # of the command cloud, where nights rent there
    own_host: Path | None = None  # its home folder, where nights measure on a host of one's own
    elsewhere: Elsewhere = HERE  # where its reapers are
    boot_off_s: int = 0  # by how much /proc shows the boot of this computer off, as after a step of its clock

    def of(self, token: str) -> "Place":
        """The same place with another token."""
        return replace(self, token=token)

    @property
    def ledger_file(self) -> Path:
        return self.data / "ledger.sqlite"

    @property
    def keys(self) -> Path:
        return self.data / "keys"

    @property
    def notes(self) -> Path:
        """Where nights and reapers note what the records may lose."""
        return self.data.parent


@dataclass(frozen=True)
class Life:
    """What a night rents, how long it works, and when it is killed."""

    request: LeaseRequest
    dies_after: str | None = None
    dies_by: int = signal.SIGKILL
    dies_times: int = 1
    work_s: float = 3000.0
    snapshot: str | None = None
    volume_gib: int | None = None  # of the volume that it keeps its model on
    clock_off_s: float = 0.0  # by how much this computer's clock is stepped in the middle of the work
    has_full_disk: bool = False  # reports cannot be written
    seed: int = 0
    night: str = NIGHT
    waits: bool = False  # for an own host that is held
    follows: Path | None = None  # it lets others move the clock until this file is there
    host_faults: tuple[HostFault, ...] = ()
    starts: tuple[str, ...] = ()  # the class of failure of each start of a server, in their order; empty: none
    loads: tuple[str, ...] = ()  # the same for each load
    strange: tuple[str, ...] = ()  # what the server of each load does, as in tests/chaos/strange_loads.py
    lost_server: tuple[str, int] | None = None  # what becomes of Prefect's, and at which call to it
    unfit: tuple[str, ...] = ()  # how each machine is unfit, as in tests/chaos/engine_faults.py; empty: it is not
    telemetry: tuple[str, ...] | None = None  # what amd-smi does in each load; None: there is none
    beside: str | None = None  # the kind of a second machine, that the same night rents beside the first
    loses_power: bool = False  # where it is killed, the whole computer is, and what was not synced may be lost
    tries: int = 1  # at taking the lease, as of a task that is retried


def lease_request(*regions: str, kind: str = "gpu-mi300x1-192gb", minutes: float = LEASE_MINUTES) -> LeaseRequest:
    """A request for one machine for two hours."""
    return LeaseRequest((Choice(kind),), minutes=minutes, regions=regions or ("atl1", "tor1"), budget_usd=100.0)
