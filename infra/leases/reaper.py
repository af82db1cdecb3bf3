"""The reaper: finds our machines by name and tag, with or without records, and releases what has expired.

It may run beside a running night and beside another reaper: deleting twice does no harm, and what a running night holds
is left alone until its lease expires.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bench.errors import CloudDeniedError, CloudError, LeaseError
from bench.machine.names import ImageName, MachineName, VolumeName
from infra.clock import Clock
from infra.clouds.cloud import Cloud, CloudMachine, Leftover
from infra.clouds.volume_cloud import VolumeCloud
from infra.leases.release import PATIENCE_S, ReleaseTarget, destroy, release_lease
from infra.leases.volumes import CREATE_S, is_unused
from infra.ledger.ledger import Lease, Ledger
from infra.ledger.volumes import VolumeBook
from infra.reporting import Say, silent


@dataclass
class Reaped:
    """The result of a reaper's round."""

    released: list[str] = field(default_factory=list)  # ids of machines, or of leases that had none
    removed: list[str] = field(default_factory=list)  # names of keys, volumes and snapshots
    unrecognized: list[str] = field(default_factory=list)  # what may be ours: a person has to decide
    failed: dict[str, str] = field(default_factory=dict)  # what could not be released, and why
    failed_clouds: set[str] = field(default_factory=set)

    def why(self) -> str:
        """What could not be released, as a sentence."""
        return "; ".join(f"{what}: {why}" for what, why in self.failed.items())


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

    `everything` also ends what a running night holds. Where one cloud fails, the next one still has its turn.
    """
    done = Reaped()
    for cloud in clouds.values():
        round_ = _Round(cloud, ledger, clock, everything, patience_s, say, done)
        try:
            round_.run()
        except LeaseError as error:
            done.failed[cloud.name] = str(error)
            done.failed_clouds.add(cloud.name)
    for lease in ledger.open_leases():
        if lease.cloud not in clouds and (everything or lease.is_orphan(clock.now()) or lease.is_overdue(clock.now())):
            done.failed[lease.machine_id or lease.lease_id] = (
                f"no token is set for its cloud {lease.cloud!r}: set it, or delete the machine in the cloud's console"
            )
    return done


@dataclass
class _Round:
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
        machines = self.find_ours()
        leases = {lease.lease_id: lease for lease in self.ledger.leases() if lease.cloud == self.cloud.name}
        for lease in leases.values():
            if lease.state != "released" and self.should_release(lease):
                self.release_lease(lease)
        self.destroy([found for found in machines if self.should_delete(found, leases)])
        self.sweep(leases)

    def find_ours(self) -> list[CloudMachine]:
        """Our machines as the cloud lists them; where it does not answer, recorded leases still have their turn."""
        try:
            return self.cloud.find_ours()
        except CloudDeniedError:
            raise
        except CloudError as error:
            self.fail(self.cloud.name, str(error))
            return []

    def should_release(self, lease: Lease) -> bool:
        """Whether a lease has to be released now."""
        now = self.clock.now()
        return self.everything or lease.state == "releasing" or lease.is_overdue(now) or lease.is_orphan(now)

    def release_lease(self, lease: Lease) -> None:
        """Release one lease; a failure is recorded, and the next one has its turn."""
        try:
            gone = release_lease(
                self.cloud, self.ledger, self.clock, lease.lease_id, patience_s=self.patience_s, say=self.say
            )
        except LeaseError as error:
            self.fail(lease.machine_id or lease.lease_id, str(error))
        else:
            self.done.released.append(gone.machine_id or gone.lease_id)

    def fail(self, what: str, why: str) -> None:
        """Record what could not be released."""
        self.done.failed[what] = why
        self.done.failed_clouds.add(self.cloud.name)

    def should_delete(self, found: CloudMachine, leases: Mapping[str, Lease]) -> bool:
        """Whether a listed machine has to be deleted, apart from the release of its lease."""
        if found.machine_id in self.done.released:
            return False
        name = MachineName.parse(found.name, self.cloud.prefix)
        if name is None:
            self.done.unrecognized.append(f"{self.cloud.name} machine {found.machine_id} named {found.name!r}")
            return False
        if self.everything or (self.cloud.is_shared and name.is_past(self.clock.now())):
            return True
        lease = leases.get(name.lease_id)
        if lease is None:
            return not self.cloud.is_shared
        # A machine of an earlier attempt appeared too late: its night has moved on.
        return lease.state == "released" or name.attempt < lease.attempt

    def destroy(self, machines: Sequence[CloudMachine]) -> None:
        """Delete machines of no open lease."""
        targets = [ReleaseTarget({found.machine_id}, found.name) for found in machines]
        try:
            left = destroy(self.cloud, self.clock, targets, patience_s=self.patience_s, say=self.say)
        except CloudDeniedError as error:
            for target in targets:
                target.trouble = f"it is still billed: {error}"
            left = [target for target in targets if not target.is_gone]
        self.done.released += [found.machine_id for found, target in zip(machines, targets, strict=True)
                                 if target.is_gone]  # fmt: skip
        for target in left:
            self.fail(str(target), target.trouble)

    def sweep(self, leases: Mapping[str, Lease]) -> None:
        """Delete expired keys, volumes and snapshots, and those of released leases."""
        for leftover in self.cloud.leftovers():
            over = self.should_remove(leftover, leases, self.clock.now())
            if over is None:
                self.done.unrecognized.append(f"{self.cloud.name} {leftover.sort} {leftover.leftover_id} named "
                                           f"{leftover.name!r}")  # fmt: skip
            elif over:
                self.remove(leftover)
        self.forget_volumes()

    def forget_volumes(self) -> None:
        """Close the record of every volume that was requested long ago and that the cloud does not list."""
        book = VolumeBook(self.ledger.path, self.clock)
        known = book.open_volumes(self.cloud.name)
        if not known or not isinstance(self.cloud, VolumeCloud):
            return
        try:
            there = {one.name: one.volume_id for one in self.cloud.volumes()}
        except CloudError:
            return  # unknown; the next round repeats it
        for one in known:
            if one.name in there:
                book.mark_made(one.cloud, one.name, there[one.name])
            elif (self.clock.now() - one.intended_at).total_seconds() > self.cloud.settle_s + CREATE_S:
                book.mark_gone(one.cloud, one.name)

    def should_remove(self, leftover: Leftover, leases: Mapping[str, Lease], now: datetime) -> bool | None:
        """Whether a key, volume or snapshot has to be deleted; None where its name does not have our form."""
        if (image := ImageName.parse(leftover.name, self.cloud.prefix)) is not None:
            return image.is_past(now)
        if (volume := VolumeName.parse(leftover.name, self.cloud.prefix)) is not None:
            # An attached volume is deleted after its machine: a night may be using it.
            return not leftover.is_attached and (volume.is_past(now) or is_unused(leftover, now))
        name = MachineName.parse(leftover.name, self.cloud.prefix)
        if name is None:
            return None
        lease = leases.get(name.lease_id)
        if lease is not None and not self.everything:
            # A lease's key is older than its last attempt; it is deleted with the lease, and not before.
            return lease.state == "released"
        return name.is_past(now) or self.everything

    def remove(self, leftover: Leftover) -> None:
        """Delete one of them; a failure is recorded."""
        try:
            self.cloud.remove(leftover)
        except CloudError as error:
            self.fail(leftover.name, str(error))
        else:
            self.done.removed.append(leftover.name)
