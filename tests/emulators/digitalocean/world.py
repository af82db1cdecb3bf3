"""Everything the emulated account holds, and the events that time will bring."""

import heapq
import itertools
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.emulators.digitalocean.behaviour import Behaviour
from tests.emulators.digitalocean.billing import HOURS_A_MONTH, SNAPSHOT_USD_PER_GB_MONTH, Bill, Interval
from tests.emulators.digitalocean.catalog import Json, Region, Size, region_json, regions, sizes
from tests.emulators.digitalocean.replies import refusal
from tests.emulators.digitalocean.resources import Action, Droplet, Image, Key, Volume, VolumeSnapshot

PROJECT_ID = "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
VPC_UUID = "760e09ef-dc84-11e8-981e-3cfdfeaae000"


class Machines(Protocol):
    """What stands behind a droplet. Every method but `start` takes one that never ran for no error."""

    def start(self, droplet: Droplet, keys: list[str]) -> str:
        """Bring the machine up for the first time and return its public address."""
        ...

    def halt(self, droplet: Droplet) -> None:
        """Switch it off; its disk stays."""
        ...

    def wake(self, droplet: Droplet) -> None:
        """Switch it on again."""
        ...

    def keep(self, droplet: Droplet, image: Image) -> None:
        """Copy its disk into a snapshot."""
        ...

    def plug(self, droplet: Droplet, volume: Volume) -> None:
        """Let it see a volume, mounted under its label where it has a filesystem."""
        ...

    def unplug(self, droplet: Droplet, volume: Volume) -> None:
        """Take the volume off it; what is on it stays."""
        ...

    def stop(self, droplet: Droplet) -> None:
        """End the machine, everything that runs on it, and its disk."""
        ...


class PaperMachines:
    """Droplets that are only written down."""

    def start(self, droplet: Droplet, keys: list[str]) -> str:
        del keys
        return f"198.18.{droplet.droplet_id // 250 % 250}.{droplet.droplet_id % 250 + 2}"

    def halt(self, droplet: Droplet) -> None:
        """Nothing runs on paper."""

    def wake(self, droplet: Droplet) -> None:
        """Nothing runs on paper."""

    def keep(self, droplet: Droplet, image: Image) -> None:
        """There is no disk."""

    def plug(self, droplet: Droplet, volume: Volume) -> None:
        """There is no disk."""

    def unplug(self, droplet: Droplet, volume: Volume) -> None:
        """There is no disk."""

    def stop(self, droplet: Droplet) -> None:
        """Nothing runs on paper."""


@dataclass
class State:
    """One account. Whoever touches it holds the emulator's lock."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    machines: Machines = field(default_factory=PaperMachines)
    bill: Bill = field(default_factory=Bill)
    billed_extra_share: float = 0.0  # what invoices have beyond the bill
    sizes: dict[str, Size] = field(default_factory=lambda: {size.slug: size for size in sizes()})
    regions: dict[str, Region] = field(default_factory=lambda: {region.slug: region for region in regions()})
    droplets: dict[int, Droplet] = field(default_factory=dict)  # destroyed ones too
    keys: dict[int, Key] = field(default_factory=dict)
    images: dict[int, Image] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    lingering: dict[str, tuple[float, Volume]] = field(default_factory=dict)  # deleted volumes, and since when
    volume_snapshots: dict[str, VolumeSnapshot] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    tags: dict[str, None] = field(default_factory=dict)  # in the order in which they were made
    projects: dict[str, Json] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)  # a resource's urn and its project
    destructions: dict[int, Json] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)  # what was done to resources that are not the client's
    account: Json = field(default_factory=dict)
    now: float = 0.0
    _ids: Iterable[int] = field(default_factory=lambda: itertools.count(500_000_001))
    _events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)

    def next_id(self) -> int:
        return next(iter(self._ids))

    def share_ids(self, other: "State") -> None:
        """Take ids from another account's numbers, which no two accounts have in common."""
        self._ids = other._ids  # noqa: SLF001 - of the same class

    def at(self, when: float, happens: Callable[[float], None]) -> None:
        """Let something happen at a moment of the emulator's clock."""
        heapq.heappush(self._events, (when, self.next_id(), happens))

    def advance(self, now: float) -> None:
        """Let everything happen that is due, each thing at its own moment."""
        while self._events and self._events[0][0] <= now:
            when, _order, happens = heapq.heappop(self._events)
            self.now = max(self.now, when)
            happens(when)
        self.now = now

    def region_json(self, slug: str) -> Json:
        region = self.regions.get(slug) or Region(slug, slug)
        return region_json(region, list(self.sizes.values()))

    def droplet_json(self, droplet: Droplet, now: float) -> Json:
        volume_ids = [one.volume_id for one in self.volumes.values() if one.droplet_id == droplet.droplet_id]
        snapshot_ids = [one.image_id for one in self.images.values() if one.droplet_id == droplet.droplet_id]
        return droplet.json(self.region_json(droplet.region), now, volume_ids, snapshot_ids)

    def living(self) -> list[Droplet]:
        return [droplet for droplet in self.droplets.values() if droplet.gone_at is None]

    def known_keys(self) -> list[Key]:
        """The keys that can be read and used by now."""
        return [key for key in self.keys.values() if self.now >= key.created_at + self.behaviour.lag["keys"]]

    def shown_volumes(self) -> list[Volume]:
        """The volumes that are listed by now, and the deleted ones that are listed still."""
        lag, gone_lag = self.behaviour.lag["volume_list"], self.behaviour.gone_lag["volume_list"]
        gone = [volume for since, volume in self.lingering.values() if self.now < since + gone_lag]
        return [*(one for one in self.volumes.values() if self.now >= one.created_at + lag), *gone]

    def wearers(self, tag: str) -> dict[str, int]:
        """How many resources of each kind bear a tag now; a droplet bears its tags a while after its creation."""
        worn: dict[str, list[list[str]]] = {
            "droplets": [one.visible_tags(self.now) for one in self.living()],
            "images": [one.tags for one in self.images.values()],
            "volumes": [one.tags for one in self.volumes.values()],
            "volume_snapshots": [one.tags for one in self.volume_snapshots.values()],
            "databases": [],
        }
        return {kind: sum(tag in tags for tags in each) for kind, each in worn.items()}

    def wear(self, worn: list[str], tags: Sequence[str]) -> None:
        """Let a resource bear more tags; each lives on in the account until it is deleted, whoever bears it.

        A tag that differs in case only from one of the account is that one: the first spelling stays.
        """
        spellings = {tag.lower(): tag for tag in self.tags}
        for tag in tags:
            spellings.setdefault(tag.lower(), tag)
        new = [tag for tag in dict.fromkeys(spellings[tag.lower()] for tag in tags) if tag not in worn]
        unknown = [tag for tag in new if tag not in self.tags]
        if len(worn) + len(new) > self.behaviour.tags_per_resource:
            raise refusal(422, f"a resource can have {self.behaviour.tags_per_resource} tags at most")
        if len(self.tags) + len(unknown) > self.behaviour.tag_limit:
            raise refusal(422, f"this account has reached its limit of {self.behaviour.tag_limit} tags")
        self.tags.update(dict.fromkeys(unknown))
        worn += new

    def begin(self, kind: str, resource_type: str, resource_id: int | None, region: str) -> Action:
        action = Action(self.next_id(), kind, resource_type, resource_id, region, self.now)
        self.actions[action.action_id] = action
        return action

    def keep_image(self, image: Image) -> None:
        """Take a snapshot into the account; it bills from now on."""
        self.images[image.image_id] = image
        price = image.size_gb * SNAPSHOT_USD_PER_GB_MONTH / HOURS_A_MONTH
        self.bill.open(
            Interval(str(image.image_id), "snapshot", image.name, image.created_at, price, foreign=image.foreign)
        )

    def new_uuid(self) -> str:
        return str(uuid.uuid4())

    def touch(self, what: str, name: str, *, foreign: bool) -> None:
        """Write down that a client changed a resource; only those planted as foreign matter."""
        if foreign:
            self.touched.append(f"{what} of the foreign {name}")


def base_images(state: State, now: float) -> None:
    """Fill the account with the images that everybody sees."""
    for slug, name, size_gb, min_disk, vendor in (
        ("gpu-amd-base", "AMD AI/ML Ready", 18.5, 30, "amd"),
        ("gpu-h100x1-base", "NVIDIA AI/ML Ready", 24.0, 40, "nvidia"),
        ("gpu-h100x8-base", "NVIDIA AI/ML Ready with NVLink", 24.0, 40, "nvidia"),
        ("amddeveloperclou-vllm0171", "vLLM on ROCm", 62.0, 120, "amd"),
        ("ubuntu-24-04-x64", "24.04 (LTS) x64", 2.4, 7, None),
    ):
        image_id = state.next_id()
        where = list(state.regions)
        state.images[image_id] = Image(image_id, name, slug, where, now, min_disk, size_gb, vendor=vendor)
