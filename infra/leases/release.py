"""Release machines: delete them until they are gone, and only then record that.

A machine is gone when it was absent twice, the cloud's settle time apart, by its id and in every list. Until then the
deletion is repeated, whatever the cloud replied: "not found" may come from a lagging list, and a success may be wrong.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from bench.errors import AccountError, CloudDeniedError, CloudError, LeaseError, LedgerError
from bench.machine.names import MachineName
from infra.clock import Clock, poll
from infra.clouds.cloud import Cloud, look_every_s
from infra.leases.tags import remove_tags_of
from infra.ledger.lease import Lease, LeaseInUseError
from infra.ledger.ledger import Attempt, Ledger
from infra.reporting import Say, silent

LOOKS_FOR_GONE = 8  # while a cloud's lists settle: one each 15 s where that takes two minutes
PAUSE_MAX_S = 120.0  # between two attempts at a cloud that does not answer
ALARM_AFTER = 5  # failed attempts; each further one is reported
PATIENCE_S = 900.0  # then the lease stays open and the reaper continues


@dataclass
class ReleaseTarget:
    """A machine to delete, by its id, its name, or both, and the state of its deletion."""

    machine_ids: set[str]
    name: str | None
    absent_since: datetime | None = None  # for the bill
    absent_from_s: float | None = None  # the same moment on the monotonic clock, for the cloud's settle time
    is_gone: bool = False
    tries: int = 0
    trouble: str = "no deletion was requested yet"

    def __str__(self) -> str:
        """How a sentence names it."""
        ids = ", ".join(sorted(self.machine_ids))
        return " ".join(filter(None, (ids and f"machine {ids}", self.name and f"named {self.name}")))


@dataclass
class _Pause:
    """The pause before the next round, which grows while the cloud does not answer."""

    look_every_s: float
    failed_in_row: int = 0

    def seconds(self, *, has_failed: bool) -> float:
        self.failed_in_row = self.failed_in_row + 1 if has_failed else 0
        return min(PAUSE_MAX_S, self.look_every_s * 2.0 ** max(0, self.failed_in_row - 1))


def destroy(
    cloud: Cloud, clock: Clock, targets: Iterable[ReleaseTarget], *, patience_s: float | None = None, say: Say = silent
) -> list[ReleaseTarget]:
    """Delete machines until each is gone; return those that are not when the time is over.

    Without `patience_s` there is no time limit. Raises CloudDeniedError where the cloud denies access.
    """
    left, failed = list(targets), list[ReleaseTarget]()
    pause = _Pause(look_every_s(cloud, LOOKS_FOR_GONE))

    def all_gone() -> bool:
        nonlocal left, failed
        failed = [target for target in left if not _push(cloud, clock, target)]
        for target in failed:
            if target.tries >= ALARM_AFTER:
                say(f"ALARM: {cloud.name}: {target} is not released after {target.tries} attempts and is still "
                    f"billed: {target.trouble}")  # fmt: skip
        left = [target for target in left if not target.is_gone]
        return not left

    poll(clock, lambda: pause.seconds(has_failed=bool(failed)), all_gone, patience_s)
    return left


def _push(cloud: Cloud, clock: Clock, target: ReleaseTarget) -> bool:
    """Delete once and look once; False where that failed or the machine still exists."""
    target.tries += 1
    try:
        for machine_id in sorted(target.machine_ids):
            cloud.release(machine_id)
        seen = _seen(cloud, target)
    except CloudDeniedError:
        raise
    except CloudError as error:
        target.trouble = str(error)
        return False
    if seen:
        # A machine found by its name is deleted at once: every look may be the last before the time is over.
        fresh, target.machine_ids = seen - target.machine_ids, target.machine_ids | seen
        target.absent_since = target.absent_from_s = None
        target.trouble = f"{cloud.name} still shows {', '.join(sorted(seen))}"
        return _push(cloud, clock, target) if fresh else False
    if target.absent_from_s is None:
        target.absent_since, target.absent_from_s = clock.now(), clock.monotonic()
    target.is_gone = clock.monotonic() - target.absent_from_s >= cloud.settle_s
    target.trouble = f"it is no longer listed, but not for {cloud.settle_s:g} s yet"
    return True


def _seen(cloud: Cloud, target: ReleaseTarget) -> set[str]:
    by_name = cloud.find(target.name) if target.name else []
    by_id = [cloud.find_by_id(machine_id) for machine_id in sorted(target.machine_ids)]
    return {found.machine_id for found in (*by_name, *by_id) if found is not None}


def explain_loss(cloud: Cloud, clock: Clock, lease: Lease) -> str | None:
    """Why a rented machine cannot be reached any more, as a sentence: it is off or gone; None where it may be running.

    It is gone where it is unknown by its id twice and in no list. A cloud that does not answer proves nothing.
    """
    if lease.machine_id is None:
        return f"lease {lease.lease_id} has no machine"
    try:
        found = cloud.find_by_id(lease.machine_id)
        if found is not None:
            return f"machine {lease.machine_id} is switched off" if found.status == "off" else None
        require_account(cloud, lease)
        clock.sleep(look_every_s(cloud, LOOKS_FOR_GONE))
        is_gone = cloud.find_by_id(lease.machine_id) is None and not (lease.name and cloud.find(lease.name))
    except (AccountError, CloudError):
        return None
    gone = f"machine {lease.machine_id} is gone and was not released by us: the cloud reclaimed it, or it was deleted"
    return gone if is_gone else None


def release_lease(
    cloud: Cloud,
    ledger: Ledger,
    clock: Clock,
    lease: Lease | str,
    *,
    patience_s: float | None = PATIENCE_S,
    say: Say = silent,
) -> Lease:
    """Delete a lease's machines, keys and volumes, and record the release once they are gone; may be repeated.

    Raises LeaseError where something still exists when the time is over: the lease stays `releasing`, and `nightbench
    reap` continues. Raises LeaseInUseError where its night has rented again since the lease was read: that machine and
    the keys stay. A ledger that cannot be written does not delay this; nor does one that cannot be read, where the
    lease itself is passed instead of its id.
    """
    lease_id = lease if isinstance(lease, str) else lease.lease_id
    lease = _read_again(ledger, lease) if isinstance(lease, str) else _same_attempt(ledger, lease)
    with suppress(CloudError):  # it is requested again before anything is concluded
        require_account(cloud, lease)
    with suppress(LedgerError):
        ledger.mark_releasing(lease_id, lease.attempt)
    targets = targets_of(ledger, lease)
    try:
        left = destroy(cloud, clock, targets, patience_s=patience_s, say=say)
    except CloudDeniedError as error:
        raise CloudDeniedError(f"{error}; MACHINE {lease.machine_id or lease.name} IS STILL BILLED") from error
    if left:
        raise LeaseError(
            f"{left[0]} of lease {lease_id} still exists after its release ({left[0].trouble}) and is still billed: "
            "run nightbench reap, and check the cloud's console"
        )
    require_account(cloud, lease)
    gone_at = max(target.absent_since or clock.now() for target in targets)
    ledger.mark_gone(lease_id, gone_at, lease.attempt)
    _same_attempt(ledger, lease)
    sweep(cloud, clock, lease_id)
    ledger.mark_released(lease_id, lease.attempt)
    remove_tags_of(cloud, [*(target.name for target in targets if target.name), *_earlier_names(ledger, lease_id)])
    return _read_again(ledger, replace(lease, state="released", released_at=gone_at))


def _same_attempt(ledger: Ledger, lease: Lease) -> Lease:
    """A lease as it is now; raises LeaseInUseError where a later attempt than that of this reading has begun."""
    now = _read_again(ledger, lease)
    require_attempt(now, lease.attempt)
    return now


def require_attempt(lease: Lease, attempt: int) -> None:
    """Raise LeaseInUseError where a later attempt of a lease than this one has begun: its machine is in use."""
    if lease.attempt != attempt:
        raise LeaseInUseError(
            f"lease {lease.lease_id} is in use: its night makes attempt {lease.attempt}, and attempt {attempt} is over"
        )


def require_account(cloud: Cloud, lease: Lease) -> None:
    """Raise AccountError where the token is not of the account that the lease's machine was rented in.

    The machine is unknown there, which says nothing of it. A row of an earlier version names no account, and a cloud
    without accounts has none: such a machine counts as gone where it is absent. Raises CloudError where the cloud does
    not answer.
    """
    if lease.account is None or (found := cloud.account()) == lease.account:
        return
    theirs = f"of account {found}" if found else "of an unknown account: it lacks the scope account:read"
    raise AccountError(
        f"machine {lease.machine_id or lease.name} of lease {lease.lease_id} was rented in account {lease.account} of "
        f"{cloud.name}, and the token is {theirs}; the lease stays open and the machine may still be billed: set a "
        f"token of account {lease.account} and run nightbench reap"
    )


def release_by_name(cloud: Cloud, clock: Clock, lease_id: str, say: Say = silent) -> list[str]:
    """Delete the machines, keys and volumes that have a lease's name, without its record; return the machines' ids.

    A machine that was just requested is searched until the cloud's lists have settled.
    """

    def named() -> list[ReleaseTarget]:
        mine = [found for found in cloud.find_ours() if _is_of(found.name, lease_id, cloud.prefix)]
        return [ReleaseTarget({found.machine_id}, found.name) for found in mine]

    targets = poll(clock, look_every_s(cloud, LOOKS_FOR_GONE), lambda: named() or None, cloud.settle_s) or []
    left = destroy(cloud, clock, targets, patience_s=PATIENCE_S, say=say)
    if left:
        raise LeaseError(f"{left[0]} still exists after its release and is still billed: run nightbench reap")
    sweep(cloud, clock, lease_id)
    return [machine_id for target in targets for machine_id in sorted(target.machine_ids)]


def _read_again(ledger: Ledger, lease: Lease | str) -> Lease:
    """A lease as the ledger has it now, or as it was when it was last read."""
    if isinstance(lease, str):
        return ledger.lease(lease)
    try:
        return ledger.lease(lease.lease_id)
    except (KeyError, LedgerError):
        return lease  # the ledger was damaged or lost while the machine was in use


def targets_of(ledger: Ledger, lease: Lease) -> list[ReleaseTarget]:
    """Whatever a lease may have rented: its machine, and that of every earlier attempt with an unknown outcome.

    A later attempt than this reading of the lease is its night's, which is at work.
    """
    known = {lease.machine_id} if lease.machine_id else set() if lease.name else {lease.lease_id}
    tries: list[Attempt] = []
    with suppress(LedgerError):
        tries = ledger.attempts(lease.lease_id)
    doubtful = [try_ for try_ in tries if try_.outcome in (None, "unanswered")]
    others = [ReleaseTarget({try_.machine_id} if try_.machine_id else set(), try_.name) for try_ in doubtful
              if try_.attempt < lease.attempt]  # fmt: skip
    return [ReleaseTarget(known, lease.name or None), *others]


def _earlier_names(ledger: Ledger, lease_id: str) -> list[str]:
    """The names of all attempts of a lease; none where the ledger cannot be read."""
    with suppress(LedgerError):
        return [one.name for one in ledger.attempts(lease_id)]
    return []


def sweep(cloud: Cloud, clock: Clock, lease_id: str, tries: int = 4) -> None:
    """Delete the keys and volumes of a lease whose machine is gone; raises LeaseError where one stays."""
    trouble: CloudError | None = None
    for number in range(tries):
        try:
            mine = [one for one in cloud.leftovers() if _is_of(one.name, lease_id, cloud.prefix)]
            for leftover in mine:
                cloud.remove(leftover)
        except CloudDeniedError:
            raise
        except CloudError as error:
            trouble = error
            clock.sleep(look_every_s(cloud, LOOKS_FOR_GONE) * 2**number)
        else:
            return
    raise LeaseError(f"the keys and volumes of lease {lease_id} cannot be deleted ({trouble}): run nightbench reap")


def _is_of(name: str, lease_id: str, prefix: str) -> bool:
    found = MachineName.parse(name, prefix)
    return found is not None and found.lease_id == lease_id
