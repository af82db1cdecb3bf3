"""Lists all that is ours at clouds and in the bucket, with prices, and deletes what no running night may need."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.cost.lease_cost import bucket_usd_per_month, kept_usd_per_month
from bench.machine.names import MachineName
from catalog.read import read_catalog
from infra.clock import Clock
from infra.clouds.cloud import Cloud, CloudMachine, Leftover
from infra.leases.prefixes import by_prefix, prefix_of
from infra.leases.reaper import Reaped, Records, Round, isolated, read_records
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.ledger.volumes import VolumeBook
from infra.models.bucket_cache import cached_models, remove_model
from infra.models.bucket_lookup import QUICK
from infra.reporting import silent
from infra.storage.object_store import ObjectStore
from nights.bucket import BucketLocation

Sort = Literal["machine", "key", "volume", "snapshot", "model"]
RUNNING = "a night that runs, or may run, needs it"


@dataclass(frozen=True)
class Owned:
    """One thing of ours; `kept_for` says why it is not deleted, None where it is."""

    sort: Sort
    place: str
    name: str
    usd_per_hour: float | None = None
    usd_per_month: float | None = None
    kept_for: str | None = None
    leftover: Leftover | None = None
    account: str | None = None  # that it is in at the cloud; None: unknown

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for the same thing in two inventories."""
        return self.sort, self.place, self.name


@dataclass
class Inventory:
    """All that is ours, and in `troubles` what could not be listed or is not recognized."""

    owned: list[Owned] = field(default_factory=list)
    troubles: Reaped = field(default_factory=Reaped)

    @property
    def to_delete(self) -> list[Owned]:
        """What no running night may need."""
        return [one for one in self.owned if one.kept_for is None]

    @property
    def kept(self) -> list[Owned]:
        """What stays for a running night."""
        return [one for one in self.owned if one.kept_for is not None]


@dataclass(frozen=True)
class Owner:
    """Where our things are; `everything`: delete also what a running night holds or may need."""

    clouds: Mapping[str, Cloud]
    ledger: Ledger
    clock: Clock
    bucket: BucketLocation | None
    everything: bool = False


def take_inventory(owner: Owner) -> Inventory:
    """List all that is ours, also what was rented under an earlier prefix.

    Whatever one cloud or the bucket raises is in `troubles`, and the next one is listed.
    """
    found = Inventory()
    known = read_records(owner.ledger, found.troubles).leases.values()
    for cloud in (each for one in owner.clouds.values() for each in by_prefix(one, known)):
        with isolated(found.troubles, cloud.name, cloud):
            owned = _at_cloud(owner, cloud, found.troubles)
            account = cloud.account() if owned else None
            found.owned += [replace(one, account=one.account or account) for one in owned]
    if owner.bucket is not None:
        with isolated(found.troubles, str(owner.bucket)):
            # Where a cloud or the ledger is not readable, a night may be running.
            is_needed = not owner.everything and bool(found.kept or found.troubles.failed)
            found.owned += _in_bucket(owner.bucket, RUNNING if is_needed else None)
    return found


def remove_stored(owner: Owner, shown: Collection[Owned], done: Reaped) -> Inventory:
    """Delete the keys, volumes, images and models that were shown, unless a night has begun that may need them.

    Machines are the reaper's, which has its turn before: a volume can be deleted once its machine is gone. Whatever is
    raised is a failure in `done`, and the next one has its turn. Returns the inventory between the two turns.
    """
    now = take_inventory(owner)
    done.failed.update(now.troubles.failed)
    done.cloud_of.update(now.troubles.cloud_of)
    agreed = {one.key for one in shown}
    for one in (one for one in now.to_delete if one.key in agreed and one.sort != "machine"):
        with isolated(done, f"{one.place} {one.sort} {one.name}", owner.clouds.get(one.place)):
            _remove(owner, one)
            done.removed += [one.name] if one.name not in done.removed else []  # lists lag behind the reaper
    return now


def _remove(owner: Owner, one: Owned) -> None:
    if one.leftover is not None:
        owner.clouds[one.place].remove(one.leftover)
    elif owner.bucket is not None:
        remove_model(ObjectStore(owner.bucket), one.name)
    if one.sort == "volume":
        VolumeBook(owner.ledger.path, owner.clock).mark_gone(one.place, one.name)


def _at_cloud(owner: Owner, cloud: Cloud, troubles: Reaped) -> list[Owned]:
    """The machines and leftovers of one cloud and prefix, judged as the reaper judges them."""
    round_ = Round(cloud, owner.ledger, owner.clock, owner.everything, 0.0, silent, troubles)
    machines = cloud.find_ours()  # before the ledger is read: a record is written before its machine is requested
    records = read_records(owner.ledger, troubles)
    here = [one for one in records.leases.values() if one.cloud == cloud.name and one.state != "released"]
    usual = owner.clouds[cloud.name].prefix
    leases = {one.lease_id: one for one in here if prefix_of(one, usual) == cloud.prefix}
    found = list(_machines(round_, machines, leases, records))
    found += [owned for one in cloud.leftovers() if (owned := _leftover(round_, one, leases, records)) is not None]
    if owner.everything or not (troubles.failed or any(one.kept_for for one in found)):
        return found
    return [replace(one, kept_for=RUNNING) if _is_shared(one, cloud.prefix) else one for one in found]


def _is_shared(one: Owned, prefix: str) -> bool:
    """Whether any night may use it: an image, or a volume that keeps a model. A key has the name of one lease."""
    return one.sort in ("snapshot", "volume") and MachineName.parse(one.name, prefix) is None


def _machines(
    round_: Round, machines: Collection[CloudMachine], leases: Mapping[str, Lease], records: Records
) -> Iterator[Owned]:
    """The machine of each open lease, listed or not, and the machines that no open lease has."""
    place = round_.cloud.name
    listed: dict[str, CloudMachine] = {}
    for found in machines:
        is_due = round_.should_delete(found, records)  # also records what is not recognized
        name = MachineName.parse(found.name, round_.cloud.prefix)
        if name is None:
            continue
        lease = leases.get(name.lease_id)
        if lease is not None and name.attempt >= lease.attempt:
            listed[lease.lease_id] = found
        else:
            kept_for = None if is_due else _of_another(name)
            yield Owned("machine", place, found.machine_id, found.usd_per_hour, kept_for=kept_for)
    for lease in leases.values():
        seen = listed.get(lease.lease_id)
        machine_id = seen.machine_id if seen else lease.machine_id or lease.lease_id
        usd = seen.usd_per_hour if seen and seen.usd_per_hour is not None else lease.usd_per_hour
        kept_for = None if round_.is_due(lease) else f"night {lease.night} is running on it"
        yield Owned("machine", place, machine_id, usd, kept_for=kept_for, account=lease.account)


def _leftover(round_: Round, one: Leftover, leases: Mapping[str, Lease], records: Records) -> Owned | None:
    """A key, a volume or an image; what has the name of a lease is deleted with it, and not before."""
    place = round_.cloud.name
    is_due = round_.should_remove(one, records, round_.now())
    if is_due is None:
        round_.done.unrecognized.append(f"{place} {one.sort} {one.leftover_id} named {one.name!r}")
        return None
    kept_for, name = None, MachineName.parse(one.name, round_.cloud.prefix)
    if name is not None:
        lease = leases.get(name.lease_id)
        is_due = is_due or (lease is not None and round_.is_due(lease))
        kept_for = None if is_due else f"night {lease.night} is running" if lease else _of_another(name)
    return Owned(one.sort, place, one.name, usd_per_month=_usd_per_month(one), kept_for=kept_for, leftover=one)


def _of_another(name: MachineName) -> str:
    until = f"{name.expires_at:%Y-%m-%d %H:%M} UTC" if name.expires_at else "an unknown time"
    return f"a night of another computer may use it until {until}"


def _usd_per_month(one: Leftover) -> float | None:
    """What a volume or an image costs; None for a key, or where the size is not known."""
    if one.size_gib is None:
        return None
    sizes = (one.size_gib, 0.0) if one.sort == "volume" else (0.0, one.size_gib)
    return kept_usd_per_month(*sizes, read_catalog().pace)


def _in_bucket(location: BucketLocation, kept_for: str | None) -> Iterator[Owned]:
    pace = read_catalog().pace
    for model, size in sorted(cached_models(ObjectStore(location, QUICK)).items()):
        usd = bucket_usd_per_month(size, location.endpoint, pace)
        yield Owned("model", str(location), model, usd_per_month=usd, kept_for=kept_for)
