"""The Cloud port: list offers, rent a machine, find it again, and release it; abilities.py has what only some can do.

No method repeats a call that may have had its effect: infra.leases.acquire decides what a lost reply means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from bench.errors import CloudDeniedError, CloudError
from bench.machine.names import MachineName
from infra.clock import Clock

T = TypeVar("T")

Status = Literal["new", "active", "off", "errored"]
LeftoverSort = Literal["key", "volume", "snapshot"]
LOOK_EVERY_MIN_S = 0.2
LOOKS_FOR_NEW = 24  # while a cloud's lists settle: one each 5 s where that takes two minutes


@dataclass(frozen=True)
class Offer:
    """A kind of machine in a region at today's price; not available while the cloud has no capacity for it."""

    kind: str
    usd_per_hour: float
    region: str | None = None  # None: the cloud has no regions, or no region has this kind now
    is_spot: bool = False
    is_available: bool = True
    gpu_vendor: str | None = None  # whose driver an image must have; None: no GPU, or the cloud does not say


@dataclass(frozen=True)
class MachineOrder:
    """One attempt to rent one machine."""

    name: MachineName
    offer: Offer
    image: str | None = None  # an image's slug, or a snapshot's id; None: the cloud's default for this kind
    night: str | None = None  # that it is for


@dataclass(frozen=True)
class CloudMachine:
    """A machine as the cloud describes it; a value that the cloud did not state is None."""

    machine_id: str
    name: str
    tags: tuple[str, ...] = ()
    status: Status = "active"  # "errored": the cloud failed to create it
    address: str | None = None
    kind: str | None = None
    region: str | None = None
    usd_per_hour: float | None = None
    created_at: datetime | None = None
    has_expired: bool | None = None  # by the machine's own clock; None: only its name says when it expires


@dataclass(frozen=True)
class Snapshot:
    """A disk image that we created."""

    snapshot_id: str
    name: str
    regions: tuple[str, ...]
    size_gb: float
    created_at: datetime | None = None


@dataclass(frozen=True)
class Leftover:
    """Something other than a machine that we created at the cloud: an SSH key, a volume, a snapshot."""

    sort: LeftoverSort
    leftover_id: str
    name: str
    size_gib: float | None = None  # None for a key, which is not billed
    is_attached: bool = False  # whether a volume is attached to a machine
    used_at: datetime | None = None  # when a volume was last attached, or else created


class MisnamedMachineError(CloudError):
    """A machine was rented and the cloud shows it under another name, by which it could not be found again."""

    def __init__(self, message: str, machine_id: str) -> None:
        super().__init__(message)
        self.machine_id = machine_id


class Cloud(Protocol):
    """Rents machines and releases them.

    A subclass inherits the methods of a cloud without accounts, regions and leftovers. Every method may raise
    CloudError where the cloud does not answer, and CloudDeniedError where it denies access.
    """

    name: str
    settle_s: float  # how long a list may lag: a machine counts as gone only after it was absent for so long
    is_shared: bool  # whether others rent in the same account, so that a machine without a record may be theirs
    prefix: str  # the prefix of our machines' names

    def now(self) -> datetime | None:
        """The time by the cloud's own clock, aware UTC, which decides when a lease expires; None where it states none.

        The clocks of those who rent and of those who reap may differ by hours.
        """
        ...

    def account(self) -> str | None:
        """The id of the account that is rented from, since only it can show that a machine is gone.

        None where a cloud has no accounts, or does not say.
        """
        return None

    def offers(self) -> list[Offer]:
        """What can be rented now, cheapest first, one offer for each kind and region."""
        ...

    def regions(self) -> list[str]:
        """Every region; empty where the cloud has none to choose from."""
        return []

    def rent(self, order: MachineOrder) -> CloudMachine:
        """Request one machine of this name, once.

        Raises NoCapacityError, CloudLimitError or CloudRefusedError where nothing was rented, NotAskedError where the
        call never arrived, LostReplyError where it is unknown whether a machine was rented, and MisnamedMachineError
        where one was rented that has another name; `release` and `find_by_id` of the same object take its id.
        """
        ...

    def find_by_id(self, machine_id: str) -> CloudMachine | None:
        """One machine by its id; None where the cloud does not list it now, which proves nothing while lists lag."""
        ...

    def find(self, name: str) -> list[CloudMachine]:
        """Every machine of this name in any list of the cloud; lowest id first."""
        ...

    def find_ours(self) -> list[CloudMachine]:
        """Every machine whose name or tag looks like ours, found without the ledger."""
        ...

    def release(self, machine_id: str) -> None:
        """Request once that a machine is deleted with everything on it; does nothing if it is already gone."""
        ...

    def leftovers(self) -> list[Leftover]:
        """Every key, volume and snapshot whose name has our prefix."""
        return []

    def remove(self, leftover: Leftover) -> None:
        """Request once that it is deleted; does nothing if it is already gone."""
        del leftover


def time_at(cloud: Cloud, clock: Clock) -> datetime:
    """Return the cloud's time, by which its things expire; the time of this computer where the cloud states none."""
    return cloud.now() or clock.now()


def look_every_s(cloud: Cloud, looks: int) -> float:
    """The pause between looks at a cloud that makes so many of them while its lists settle."""
    return max(LOOK_EVERY_MIN_S, cloud.settle_s / looks)


def answer_or(call: Callable[[], T], otherwise: T) -> T:
    """What a cloud answers, or `otherwise` where it does not answer. Raises CloudDeniedError where it denies access."""
    try:
        return call()
    except CloudDeniedError:
        raise
    except CloudError:
        return otherwise
