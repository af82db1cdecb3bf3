"""The reaper: finds our machines by name and tag, with or without records, and releases what has expired.

It may run beside a running night and beside another reaper: deleting twice does no harm, and what a running night holds
is left alone until its lease expires.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bench.errors import CloudDeniedError, CloudError, LedgerError, NightbenchError
from bench.machine.names import ImageName, MachineName, VolumeName
from infra.clock import Clock
from infra.clouds.abilities import TagCloud, VolumeCloud
from infra.clouds.cloud import Cloud, CloudMachine, Leftover
from infra.leases.prefixes import by_prefix, prefix_of
from infra.leases.release import PATIENCE_S, ReleaseTarget, destroy, release_lease
from infra.leases.tags import unneeded_tags
from infra.leases.volumes import CREATE_S, is_of_account, is_of_prefix, is_unused
from infra.ledger.lease import Lease, LeaseInUseError
from infra.ledger.ledger import Ledger
from infra.ledger.volumes import VolumeBook
from infra.reporting import Say, silent


@dataclass
class Reaped:
    """The result of a reaper's round."""

    released: list[str] = field(default_factory=list)  # ids of machines, or of leases that had none
    removed: list[str] = field(default_factory=list)  # names of keys, volumes, snapshots and tags
    unrecognized: list[str] = field(default_factory=list)  # what may be ours: a person has to decide
    failed: dict[str, str] = field(default_factory=dict)  # what could not be released, and why
    cloud_of: dict[str, str] = field(default_factory=dict)  # where it failed; what is not here is a record of ours
    failed_clouds: set[str] = field(default_factory=set)

    def why(self) -> str:
        """What could not be released, as a sentence."""
        return "; ".join(f"{what}: {why}" for what, why in self.failed.items())


@contextmanager
def isolated(done: Reaped, what: str, cloud: Cloud | None = None, *, is_billed: bool = True) -> Iterator[None]:
    """Record whatever is raised as the failure of `what`, so that the next one has its turn."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of whatever kind: the other machines are billed meanwhile
        done.failed[what] = _as_sentence(error)
        if cloud is not None:
            done.cloud_of[what] = cloud.name
            done.failed_clouds.update([cloud.name] if is_billed else [])


@dataclass(frozen=True)
class Records:
    """What the ledger knows of one round; an unreadable lease may be that of a running night."""

    leases: dict[str, Lease]  # by their ids
    unreadable: Collection[str]  # ids of leases whose rows cannot be read
    is_whole: bool  # False: the ledger cannot be read at all, so that any lease may be in it

    def may_be_running(self, lease_id: str) -> bool:
        """Whether a lease that is not in `leases` may be in the ledger all the same."""
        return lease_id in self.unreadable or not self.is_whole


def read_records(ledger: Ledger, done: Reaped) -> Records:
    """The leases that can be read; what cannot be read is recorded as a failure."""
    try:
        leases, unreadable = ledger.readable_leases()
    except LedgerError as error:
        done.failed[str(ledger.path)] = str(error)
        return Records({}, (), is_whole=False)
    done.failed.update(unreadable)
    return Records({lease.lease_id: lease for lease in leases}, unreadable.keys(), is_whole=True)


def reap(
    clouds: Mapping[str, Cloud],
    ledger: Ledger,
    clock: Clock,
    *,
    everything: bool = False,
    patience_s: float = PATIENCE_S,
    say: Say = silent,
) -> Reaped:
    """Release every lease whose process has exited or that has expired, and every machine of ours past its deadline.

    `everything` also ends what a running night holds. Whatever a cloud, a machine or a record raises is in `failed`,
    and the next one has its turn.
    """
    done = Reaped()
    known = read_records(ledger, done).leases.values()
    for cloud in (each for one in clouds.values() for each in by_prefix(one, known)):
        round_ = Round(cloud, ledger, clock, everything, patience_s, say, done)
        with isolated(done, cloud.name, cloud):
            round_.run()
    for lease in read_records(ledger, done).leases.values():
        if lease.cloud not in clouds and lease.state != "released":
            with isolated(done, lease.lease_id):
                now = clock.now() + timedelta(seconds=lease.cloud_ahead_s)
                _report_unreachable(lease, now, done, everything=everything)
    return done


def _report_unreachable(lease: Lease, now: datetime, done: Reaped, *, everything: bool) -> None:
    if everything or lease.is_orphan() or lease.is_overdue(now):
        what = lease.machine_id or lease.lease_id
        done.cloud_of[what] = lease.cloud
        done.failed[what] = (
            f"no token is set for its cloud {lease.cloud!r}: set it, or delete the machine in the cloud's console"
        )


@dataclass
class Round:
    """One cloud's turn."""

    cloud: Cloud
    ledger: Ledger
    clock: Clock
    everything: bool
    patience_s: float
    say: Say
    done: Reaped

    def run(self) -> None:
        """Release leases first, then machines of no open lease, then keys, volumes and snapshots."""
        # Machines are listed before the ledger is read: a record is written before its machine is requested.
        machines: list[CloudMachine] = []
        try:
            machines = self.cloud.find_ours()
        except CloudDeniedError:
            raise  # the token is rejected, so no other call can succeed
        except Exception as error:  # noqa: BLE001 - recorded leases still have their turn
            self.fail(self.cloud.name, _as_sentence(error))
        records = read_records(self.ledger, self.done)
        for lease in records.leases.values():
            is_here = lease.cloud == self.cloud.name and prefix_of(lease, self.cloud.prefix) == self.cloud.prefix
            if is_here and lease.state != "released":
                with self.isolated(lease.machine_id or lease.lease_id):
                    self.release_if_due(lease)
        self.destroy([found for found in machines if self.should_delete(found, records)])
        with self.isolated(f"{self.cloud.name} keys, volumes and snapshots"):
            self.sweep(records)
        with self.isolated(f"{self.cloud.name} records of volumes"):
            self.forget_volumes()
        # Tags are not billed, so that a night may begin all the same.
        with isolated(self.done, f"{self.cloud.name} tags", self.cloud, is_billed=False):
            self.sweep_tags(machines, read_records(self.ledger, self.done))

    def isolated(self, what: str) -> AbstractContextManager[None]:
        """Record whatever is raised as a failure at this cloud."""
        return isolated(self.done, what, self.cloud)

    def release_if_due(self, lease: Lease) -> None:
        """Release one lease whose process has exited or that has expired."""
        if not self.is_due(lease):
            return
        try:
            gone = release_lease(self.cloud, self.ledger, self.clock, lease, patience_s=self.patience_s, say=self.say)
        except LeaseInUseError as error:
            self.say(str(error))
        else:
            self.done.released.append(gone.machine_id or gone.lease_id)

    def is_due(self, lease: Lease) -> bool:
        """Whether an open lease has to be released: its process has exited, it has expired, or everything goes."""
        return self.everything or lease.state == "releasing" or lease.is_orphan() or lease.is_overdue(self.now())

    def now(self) -> datetime:
        """The cloud's time, by which whatever was rented expires: this computer's clock may be hours off.

        Raises CloudError where the cloud does not state it.
        """
        now = self.cloud.now()
        if now is None:
            raise CloudError(
                f"the answers of {self.cloud.name} have no Date header, so it is unknown what has expired: check the "
                "proxies between it and this computer"
            )
        return now

    def should_delete(self, found: CloudMachine, records: Records) -> bool:
        """Whether a listed machine has to be deleted, apart from the release of its lease."""
        if found.machine_id in self.done.released:
            return False
        name = MachineName.parse(found.name, self.cloud.prefix)
        if name is None:
            self.done.unrecognized.append(f"{self.cloud.name} machine {found.machine_id} named {found.name!r}")
            return False
        is_past = name.is_past(self.now()) if found.has_expired is None else found.has_expired
        if self.everything or (self.cloud.is_shared and is_past):
            return True
        lease = records.leases.get(name.lease_id)
        if lease is None:
            return not self.cloud.is_shared and not records.may_be_running(name.lease_id)
        # A machine of an earlier attempt appeared too late: its night has moved on.
        return lease.state == "released" or name.attempt < lease.attempt

    def destroy(self, machines: Sequence[CloudMachine]) -> None:
        """Delete machines of no open lease: all of them together, and each by itself where something is raised."""
        targets = [ReleaseTarget({found.machine_id}, found.name) for found in machines]
        try:
            destroy(self.cloud, self.clock, targets, patience_s=self.patience_s, say=self.say)
        except CloudDeniedError as error:
            for target in targets:
                target.trouble = f"it is still billed: {error}"
        except Exception:  # noqa: BLE001 - of whatever kind: the other machines are billed meanwhile
            for target in targets:
                if not target.is_gone:
                    self.destroy_alone(target)
        for found, target in zip(machines, targets, strict=True):
            if target.is_gone:
                self.done.released.append(found.machine_id)
            else:
                # By its id alone, as a lease's: one machine is one failure, and one message.
                self.fail(found.machine_id, f"{found.name}: {target.trouble}")

    def destroy_alone(self, target: ReleaseTarget) -> None:
        """Delete one machine; whatever is raised is its trouble."""
        try:
            destroy(self.cloud, self.clock, [target], patience_s=self.patience_s, say=self.say)
        except Exception as error:  # noqa: BLE001 - of whatever kind: the next machine has its turn
            target.trouble = f"it is still billed: {_as_sentence(error)}"

    def fail(self, what: str, why: str) -> None:
        """Record what could not be released."""
        self.done.failed[what] = why
        self.done.cloud_of[what] = self.cloud.name
        self.done.failed_clouds.add(self.cloud.name)

    def sweep(self, records: Records) -> None:
        """Delete expired keys, volumes and snapshots, and those of released leases."""
        for leftover in self.cloud.leftovers():
            over = self.should_remove(leftover, records, self.now())
            if over is None:
                self.done.unrecognized.append(f"{self.cloud.name} {leftover.sort} {leftover.leftover_id} named "
                                           f"{leftover.name!r}")  # fmt: skip
            elif over:
                with self.isolated(leftover.name):
                    self.cloud.remove(leftover)
                    self.done.removed.append(leftover.name)

    def forget_volumes(self) -> None:
        """Close the record of every volume that was requested long ago and that the cloud does not list."""
        book = VolumeBook(self.ledger.path, self.clock)
        # The cloud lists the volumes of this round's prefix only.
        known = [one for one in book.open_volumes(self.cloud.name) if is_of_prefix(self.cloud, one)]
        if not known or not isinstance(self.cloud, VolumeCloud):
            return
        there = {one.name: one.volume_id for one in self.cloud.volumes()}
        for one in known:
            # One that is not listed is not billed either.
            with isolated(self.done, f"record of volume {one.name}", self.cloud, is_billed=False):
                if one.name in there:
                    book.mark_made(one.cloud, one.name, there[one.name])
                elif not is_of_account(self.cloud, one):
                    continue  # it may be there in the account that it was requested in
                elif one.intended_at is None:
                    raise LedgerError(
                        f"the cloud does not list it, and the date of its record in {book.path} cannot be read: "
                        "a newer version of Nightbench may have written it; use that version"
                    )
                elif (self.clock.now() - one.intended_at).total_seconds() > self.cloud.settle_s + CREATE_S:
                    book.mark_gone(one.cloud, one.name)

    def sweep_tags(self, machines: Sequence[CloudMachine], records: Records) -> None:
        """Delete the tags that no resource has any more."""
        if not isinstance(self.cloud, TagCloud):
            return
        listed = [found.name for found in machines if found.machine_id not in self.done.released]
        requested = [lease.name for lease in records.leases.values() if lease.state != "released" and lease.name]
        for tag in unneeded_tags(self.cloud, self.now(), [*listed, *requested]):
            with isolated(self.done, tag, self.cloud, is_billed=False):
                self.cloud.remove_tag(tag)
                self.done.removed.append(tag)

    def should_remove(self, leftover: Leftover, records: Records, now: datetime) -> bool | None:
        """Whether a key, volume or snapshot has to be deleted; None where its name does not have our form."""
        if (image := ImageName.parse(leftover.name, self.cloud.prefix)) is not None:
            return image.is_past(now)
        if (volume := VolumeName.parse(leftover.name, self.cloud.prefix)) is not None:
            # An attached volume is deleted after its machine: a night may be using it.
            return not leftover.is_attached and (volume.is_past(now) or is_unused(leftover, now))
        name = MachineName.parse(leftover.name, self.cloud.prefix)
        if name is None:
            return None
        lease = records.leases.get(name.lease_id)
        if lease is not None and not self.everything:
            # A lease's key is older than its last attempt; it is deleted with the lease, and not before.
            return lease.state == "released"
        return name.is_past(now) or self.everything


def _as_sentence(error: Exception) -> str:
    return str(error) if isinstance(error, NightbenchError) else f"{type(error).__name__}: {error}"
