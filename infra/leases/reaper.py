"""The reaper: finds what is ours by name and tag, with or without records, and gives back what should be gone.

It may run beside a living night and beside itself: deleting twice harms nobody, and what a living night holds is left
alone until its time is over.
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
from infra.leases.volumes import MAKE_S, is_unused
from infra.ledger.ledger import Lease, Ledger
from infra.ledger.volumes import VolumeBook
from infra.reporting import Say, silent


@dataclass
class Reaped:
    """What came of a reaper's round."""

    released: list[str] = field(default_factory=list)  # ids of machines, or of leases that had none
    removed: list[str] = field(default_factory=list)  # names of keys, volumes and snapshots
    unrecognized: list[str] = field(default_factory=list)  # what looks like ours and is not known to be: for a person
    failed: dict[str, str] = field(default_factory=dict)  # what could not be given back, and why
    failed_clouds: set[str] = field(default_factory=set)

    def why(self) -> str:
        """What could not be given back, as a sentence."""
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
    """Give back every lease whose owner is dead or whose time is over, and every machine of ours past its name's time.

    `everything` also ends what a living night holds. One cloud's trouble keeps nobody from the next.
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
                f"nobody here can reach its cloud {lease.cloud!r}: set that cloud's token, or give it back by hand"
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
        """Leases first, then machines that no open lease speaks of, then keys, volumes and snapshots."""
        # Machines before records: whoever rents writes first, so a machine seen here has its record by now.
        machines = self.find_ours()
        leases = {lease.lease_id: lease for lease in self.ledger.leases() if lease.cloud == self.cloud.name}
        for lease in leases.values():
            if lease.state != "released" and self.should_release(lease):
                self.release_lease(lease)
        self.destroy([found for found in machines if self.should_delete(found, leases)])
        self.sweep(leases)

    def find_ours(self) -> list[CloudMachine]:
        """What the cloud shows of ours; where it cannot say, the leases on record still have their turn."""
        try:
            return self.cloud.find_ours()
        except CloudDeniedError:
            raise
        except CloudError as error:
            self.fail(self.cloud.name, str(error))
            return []

    def should_release(self, lease: Lease) -> bool:
        """Whether a lease is to be ended now."""
        now = self.clock.now()
        return self.everything or lease.state == "releasing" or lease.is_overdue(now) or lease.is_orphan(now)

    def release_lease(self, lease: Lease) -> None:
        """Give one lease back; what fails is noted, and the next one has its turn."""
        try:
            gone = release_lease(
                self.cloud, self.ledger, self.clock, lease.lease_id, patience_s=self.patience_s, say=self.say
            )
        except LeaseError as error:
            self.fail(lease.machine_id or lease.lease_id, str(error))
        else:
            self.done.released.append(gone.machine_id or gone.lease_id)

    def fail(self, what: str, why: str) -> None:
        """Note what could not be given back."""
        self.done.failed[what] = why
        self.done.failed_clouds.add(self.cloud.name)

    def should_delete(self, found: CloudMachine, leases: Mapping[str, Lease]) -> bool:
        """Whether a machine that was found is to be destroyed for its own sake."""
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
        # A machine of an earlier attempt was given up by whoever rents; it appeared too late.
        return lease.state == "released" or name.attempt < lease.attempt

    def destroy(self, machines: Sequence[CloudMachine]) -> None:
        """Destroy machines of which no open lease speaks."""
        targets = [ReleaseTarget({found.machine_id}, found.name) for found in machines]
        try:
            left = destroy(self.cloud, self.clock, targets, patience_s=self.patience_s, say=self.say)
        except CloudDeniedError as error:
            for target in targets:
                target.trouble = f"it goes on costing: {error}"
            left = [target for target in targets if not target.is_gone]
        self.done.released += [found.machine_id for found, target in zip(machines, targets, strict=True)
                                 if target.is_gone]  # fmt: skip
        for target in left:
            self.fail(str(target), target.trouble)

    def sweep(self, leases: Mapping[str, Lease]) -> None:
        """Remove keys, volumes and snapshots past their time, and those of leases that are over."""
        for leftover in self.cloud.leftovers():
            over = self.should_remove(leftover, leases, self.clock.now())
            if over is None:
                self.done.unrecognized.append(f"{self.cloud.name} {leftover.sort} {leftover.leftover_id} named "
                                           f"{leftover.name!r}")  # fmt: skip
            elif over:
                self.remove(leftover)
        self.forget_volumes()

    def forget_volumes(self) -> None:
        """Close the record of every volume that was asked for long ago and that the cloud does not have."""
        book = VolumeBook(self.ledger.path, self.clock)
        known = book.open_volumes(self.cloud.name)
        if not known or not isinstance(self.cloud, VolumeCloud):
            return
        try:
            there = {one.name: one.volume_id for one in self.cloud.volumes()}
        except CloudError:
            return  # nobody can say; the next round asks again
        for one in known:
            if one.name in there:
                book.mark_made(one.cloud, one.name, there[one.name])
            elif (self.clock.now() - one.intended_at).total_seconds() > self.cloud.settle_s + MAKE_S:
                book.mark_gone(one.cloud, one.name)

    def should_remove(self, leftover: Leftover, leases: Mapping[str, Lease], now: datetime) -> bool | None:
        """Whether a key, volume or snapshot is to go; None where its name is not built as ours are."""
        if (image := ImageName.parse(leftover.name, self.cloud.prefix)) is not None:
            return image.is_past(now)
        if (volume := VolumeName.parse(leftover.name, self.cloud.prefix)) is not None:
            # What a machine has goes after it: no night's disk is pulled from under it.
            return not leftover.is_held and (volume.is_past(now) or is_unused(leftover, now))
        name = MachineName.parse(leftover.name, self.cloud.prefix)
        if name is None:
            return None
        lease = leases.get(name.lease_id)
        if lease is not None and not self.everything:
            # A lease's key is older than its last attempt; it goes when the lease does, and not before.
            return lease.state == "released"
        return name.is_past(now) or self.everything

    def remove(self, leftover: Leftover) -> None:
        """Remove one of them; what fails is noted."""
        try:
            self.cloud.remove(leftover)
        except CloudError as error:
            self.fail(leftover.name, str(error))
        else:
            self.done.removed.append(leftover.name)
