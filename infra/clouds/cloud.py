"""The Cloud port: what can be rented, renting it, finding it again, and giving it back.

No method repeats a call that may have had its effect: infra.leases.acquire decides what a lost
answer means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from bench.errors import CloudDeniedError, CloudError
from bench.machine.names import MachineName

T = TypeVar("T")

Status = Literal["new", "active", "off", "errored"]
LeftoverSort = Literal["key", "volume", "snapshot"]
LOOK_EVERY_MIN_S = 0.2
LOOKS_FOR_NEW = 24  # while a cloud's lists settle: one each 5 s where that takes two minutes


@dataclass(frozen=True)
class Offer:
    """A kind of machine, at a place, at today's price; not available where the cloud has none left to give."""

    kind: str
    usd_per_hour: float
    region: str | None = None  # None: the cloud has no regions, or has this kind nowhere now
    is_spot: bool = False
    is_available: bool = True


@dataclass(frozen=True)
class MachineOrder:
    """One try at renting one machine."""

    name: MachineName
    offer: Offer
    image: str | None = None  # an image's slug, or a snapshot's id; None: the cloud's own choice for this kind


@dataclass(frozen=True)
class CloudMachine:
    """A machine as the cloud describes it; what it did not say is None."""

    machine_id: str
    name: str
    tags: tuple[str, ...] = ()
    status: Status = "active"  # "errored": the cloud gave up making it
    address: str | None = None
    kind: str | None = None
    region: str | None = None
    usd_per_hour: float | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class Snapshot:
    """A disk image that we made."""

    snapshot_id: str
    name: str
    regions: tuple[str, ...]
    size_gb: float
    created_at: datetime | None = None


@dataclass(frozen=True)
class Leftover:
    """Something besides machines that we made at the cloud: an ssh key, a volume, a snapshot."""

    sort: LeftoverSort
    leftover_id: str
    name: str
    size_gib: float | None = None  # of what is billed by its size
    is_held: bool = False  # a volume that a machine has
    used_at: datetime | None = None  # when a volume was last attached, or else made


class Cloud(Protocol):
    """Rent machines and give them back.

    Every method may raise CloudError where the cloud cannot be asked, and CloudDeniedError where it turns us away.
    """

    name: str
    settle_s: float  # how long a list may lag behind the truth: "gone" is said after this long, not before
    is_shared: bool  # whether others rent in the same account, so that a machine we have no record of may be theirs
    prefix: str  # what the names of our machines begin with

    def offers(self) -> list[Offer]:
        """What could be rented now, cheapest first, one for each kind and region."""
        ...

    def regions(self) -> list[str]:
        """Every place there is; empty where the cloud has none to choose from."""
        ...

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Ask once for one machine of this name.

        Raises NoCapacityError, CloudLimitError or CloudRefusedError where nothing was rented, NotAskedError where the
        call never arrived, and LostReplyError where nobody knows.
        """
        ...

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """One machine by its id; None where the cloud does not know it now, which early and late proves nothing."""
        ...

    def find(self, name: str) -> list[CloudMachine]:
        """Every machine of this name, in the union of all lists; lowest id first."""
        ...

    def find_ours(self) -> list[CloudMachine]:
        """Every machine whose name or tag looks like ours, found without any record of ours."""
        ...

    def release(self, machine_id: str) -> None:
        """Ask once to stop paying for a machine and everything on it; one that is gone is not an error."""
        ...

    def leftovers(self) -> list[Leftover]:
        """Every key, volume and snapshot whose name begins as ours do."""
        ...

    def remove(self, leftover: Leftover) -> None:
        """Ask once to remove it; one that is gone is not an error."""
        ...

    def snapshot(self, machine_id: str, name: str) -> None:
        """Begin to make an image of a machine's disk; it appears in `snapshots` under this name once it is whole."""
        ...

    def snapshots(self) -> list[Snapshot]:
        """Every image of ours, oldest first."""
        ...


def look_every_s(cloud: Cloud, looks: int) -> float:
    """How often to look at a cloud, to have looked so many times by when its lists have settled."""
    return max(LOOK_EVERY_MIN_S, cloud.settle_s / looks)


def answer_or(call: Callable[[], T], otherwise: T) -> T:
    """What a cloud answers; `otherwise` where it cannot be asked, which says nothing. Raises where it turns us away."""
    try:
        return call()
    except CloudDeniedError:
        raise
    except CloudError:
        return otherwise
