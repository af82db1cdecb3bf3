"""Taking a lease: a machine is written down before it is asked for, and what nobody confirmed is looked for.

A lost answer is never met by asking again: the machine is searched by its name until the cloud's lists have settled,
and taken if it is there. Only then does a new attempt begin, under a new name.
"""

import uuid
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    LeaseError,
    LedgerError,
    LostReplyError,
    NoCapacityError,
)
from bench.machine.names import MachineName
from infra.clock import Clock
from infra.clouds.cloud import Cloud, CloudMachine, MachineOrder, Offer
from infra.leases.activation import ActivationTimeouts, AttemptFailure, wait_until_up
from infra.leases.create import create, search
from infra.leases.offers import BILLED_MINUTES_MIN, LeaseRequest, fitting, image_for, why_too_dear
from infra.leases.release import ReleaseTarget, destroy, release_lease
from infra.ledger.ledger import Intent, Lease, Ledger
from infra.reporting import Say, silent

TRIES_PER_OFFER = 2  # in one round, where its machine was promised and never came up
LOST_MAX = 3  # attempts whose answer was lost and whose machine never appeared
ROUND_PAUSE_S, ROUND_PAUSE_MAX_S = 30.0, 600.0
UNDO_PATIENCE_S = 300.0


def take_lease(
    cloud: Cloud,
    ledger: Ledger,
    clock: Clock,
    request: LeaseRequest,
    *,
    night: str,
    say: Say = silent,
) -> Lease:
    """Rent the first machine of the plan that can be had, and return it once it is up and has an address.

    Called again by the same process for the same night, it takes up what it began. Raises LeaseError where the cloud
    does not know the kind, where everything is too dear or taken, and where it refuses; nothing is left rented then.
    """
    acquisition = _Acquisition(cloud, ledger, clock, request, night, say)
    begun = [lease for lease in ledger.open_leases() if lease.night == night and lease.cloud == cloud.name]
    try:
        for lease in begun:
            if lease.is_own() and lease.state in ("intended", "held") and acquisition.take_up(lease):
                return ledger.lease(lease.lease_id)
        return acquisition.by_plan()
    except BaseException:
        acquisition.undo()
        raise


@dataclass
class _Acquisition:
    """One lease in the making."""

    cloud: Cloud
    ledger: Ledger
    clock: Clock
    request: LeaseRequest
    night: str
    say: Say
    timeouts: ActivationTimeouts = field(default_factory=ActivationTimeouts)
    lease_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    attempt: int = 0
    lost: int = 0
    failures: list[AttemptFailure] = field(default_factory=list)
    requested_names: list[str] = field(default_factory=list)  # the names under which a machine was asked for
    named: tuple[Offer, ...] = ()  # what the cloud named itself when it last had no capacity

    def by_plan(self) -> Lease:
        """Go through the plan from round to round until a machine is up or patience ends."""
        until = self.clock.now() + timedelta(seconds=self.request.patience_s)
        pause_s = ROUND_PAUSE_S
        while True:
            if self.one_round():
                return self.ledger.lease(self.lease_id)
            if self.clock.now() + timedelta(seconds=pause_s) > until:
                raise self.exhausted()
            self.say(f"{self.cloud.name} has no such machine now; asking again in {pause_s:.0f} s")
            self.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, ROUND_PAUSE_MAX_S)

    def one_round(self) -> bool:
        """Try each offer of the plan once; whether one gave a machine."""
        plan = deque(self.affordable(fitting(self.cloud.offers(), self.cloud.regions(), self.request, self.cloud.name)))
        tries: Counter[Offer] = Counter()
        while plan:
            offer = plan.popleft()
            if tries[offer] >= TRIES_PER_OFFER or self.is_too_dear(offer):
                continue
            failure = self.try_offer(offer)
            if failure is None:
                return True
            self.failures.append(failure)
            if failure.outcome in ("no-capacity", "refused"):
                tries[offer] = TRIES_PER_OFFER
                plan.extendleft(reversed([near for near in self.named if not tries[near]]))
            elif failure.outcome == "unanswered":
                self.lost += 1
                plan.appendleft(offer)
            else:
                tries[offer] += 1
                plan.append(offer)  # its machine may have had bad luck; but the others come first
        return False

    def affordable(self, offers: list[Offer]) -> list[Offer]:
        """The offers that the budget still allows; LeaseError where it allows none any more."""
        left = [offer for offer in offers if not self.is_too_dear(offer)]
        if offers and not left:
            cheapest = min(offers, key=lambda offer: offer.usd_per_hour)
            why = why_too_dear(cheapest, self.request, self.spent_usd())
            raise LeaseError(f"{self.cloud.name}: {why}; nothing is rented, after {self.attempt} tries")
        return left

    def is_too_dear(self, offer: Offer) -> bool:
        """Whether earlier attempts have used up what this one may cost."""
        return bool(self.attempt) and why_too_dear(offer, self.request, self.spent_usd()) is not None

    def spent_usd(self) -> float:
        """What the machines of earlier attempts may have cost at most, the cloud's minimum included."""
        tries = [one for one in self.ledger.attempts(self.lease_id) if one.rented_at is not None]
        return sum(
            one.usd_per_hour * max(_hours(one.rented_at, one.ended_at or self.clock.now()), BILLED_MINUTES_MIN / 60)
            for one in tries
        )

    def exhausted(self) -> LeaseError:
        """Why there is no machine, in a sentence."""
        kinds = " or ".join(dict.fromkeys(choice.kind for choice in self.request.choices))
        said = f"; the last try: {self.failures[-1].reason}" if self.failures else ""
        return NoCapacityError(
            f"{self.cloud.name} has no {kinds} to give now, after {self.attempt} tries{said}; nothing is rented: "
            "try later, or add regions or alternatives to the suite's [machine]"
        )

    def try_offer(self, offer: Offer) -> AttemptFailure | None:
        """One attempt, written down before and after; None where its machine is up."""
        self.attempt += 1
        self.named = ()
        expires_at = self.clock.now() + timedelta(minutes=self.request.minutes)
        name = MachineName(self.lease_id, self.attempt, expires_at, self.cloud.prefix)
        self.ledger.intend(self.lease_id, self.intent(offer, name))
        self.requested_names.append(str(name))
        failure = self.create_and_wait(MachineOrder(name, offer, image_for(offer, self.request)))
        self.end_attempt(failure)
        if failure is not None:
            self.say(f"attempt {self.attempt}, {offer.kind} in {offer.region}: {failure.reason}")
        return failure

    def intent(self, offer: Offer, name: MachineName) -> Intent:
        """What is written down before the call."""
        return Intent(
            night=self.night,
            cloud=self.cloud.name,
            usd_per_hour=offer.usd_per_hour,
            expires_at=name.expires_at or self.clock.now(),
            name=str(name),
            attempt=name.attempt,
            kind=offer.kind,
            region=offer.region,
            is_spot=offer.is_spot,
            budget_usd=self.request.budget_usd,
            image=image_for(offer, self.request),
        )

    def create_and_wait(self, order: MachineOrder) -> AttemptFailure | None:
        """Ask for the machine, hold it, and wait until it is up."""
        try:
            found = create(self.cloud, self.clock, order)
        except NoCapacityError as error:
            allowed = self.request.regions
            near = [replace(order.offer, region=region) for region in error.regions]
            self.named = tuple(offer for offer in near if not allowed or offer.region in allowed)
            return AttemptFailure("no-capacity", str(error))
        except LostReplyError as error:
            if self.lost + 1 >= LOST_MAX:
                raise
            return AttemptFailure("unanswered", str(error))
        except CloudLimitError as error:
            self.ledger.end_attempt(self.lease_id, "over-limit", str(error))
            raise CloudLimitError(f"{error}; {self.our_own()}") from error
        except (CloudDeniedError, CloudRefusedError) as error:
            self.ledger.end_attempt(self.lease_id, "refused", str(error))
            raise
        return self.hold_and_wait(found, order.offer)

    def our_own(self) -> str:
        """What of the account's machines is ours, as a sentence."""
        try:
            names = ", ".join(found.name for found in self.cloud.find_ours())
        except CloudError:
            return "which of its machines are ours could not be seen"
        return f"ours are {names}" if names else "none of its machines is ours"

    def hold_and_wait(self, found: CloudMachine, offer: Offer) -> AttemptFailure | None:
        """Hold a machine and wait until it is up; one that does not come up, or costs too much, is given back."""
        # Of the price that was offered and the one that was given, the higher is believed.
        offer = replace(offer, usd_per_hour=max(offer.usd_per_hour, found.usd_per_hour or 0.0))
        self.ledger.hold(self.lease_id, found.machine_id, offer.usd_per_hour)
        found = self.delete_duplicates(found)
        too_dear = why_too_dear(offer, self.request)
        up = (
            AttemptFailure("refused", too_dear)
            if too_dear
            else wait_until_up(self.cloud, self.clock, found, self.timeouts)
        )
        if isinstance(up, AttemptFailure):
            gone = ReleaseTarget({found.machine_id}, found.name)
            self.delete_unwanted([gone])
            return replace(up, gone_at=gone.absent_since)
        self.delete_duplicates(up, is_up=True)
        self.ledger.set_address(self.lease_id, up.address)
        return None

    def delete_duplicates(self, found: CloudMachine, *, is_up: bool = False) -> CloudMachine:
        """Of the machines that bear this one's name keep the one with the lowest id, or the one that is up already."""
        with suppress(CloudError):  # a look that fails now is repeated when the machine is up, and when it goes
            same = self.cloud.find(found.name)
            kept = found if is_up or not same else same[0]
            others = [one.machine_id for one in same if one.machine_id != kept.machine_id]
            if others:
                said = f"keeping {kept.machine_id}, deleting {', '.join(others)}"
                self.say(f"more than one machine is named {found.name}: {said}")
                self.ledger.hold(self.lease_id, kept.machine_id)
                self.delete_unwanted([ReleaseTarget({machine_id}, None) for machine_id in others])
            return kept
        return found

    def delete_unwanted(self, targets: list[ReleaseTarget]) -> None:
        """Destroy what is not wanted; raises LeaseError where it stays."""
        left = destroy(self.cloud, self.clock, targets, patience_s=self.request.minutes * 60, say=self.say)
        if left:
            raise LeaseError(f"{left[0]} is not wanted and cannot be given back ({left[0].trouble}): nightbench reap")

    def take_up(self, lease: Lease) -> bool:
        """Go on with a lease this process began: find its machine, or give the lease up; whether it is up now."""
        self.lease_id, self.attempt = lease.lease_id, lease.attempt
        if lease.state == "held" and lease.address is not None:
            return True
        found = search(self.cloud, self.clock, lease.name or "")
        offer = Offer(lease.kind or "", lease.usd_per_hour, lease.region, lease.is_spot)
        failure = self.hold_and_wait(found, offer) if found else AttemptFailure("unanswered", "it never appeared")
        self.end_attempt(failure)
        return failure is None

    def end_attempt(self, failure: AttemptFailure | None) -> None:
        """Write down what came of the attempt."""
        if failure is None:
            self.ledger.end_attempt(self.lease_id, "rented")
        else:
            self.ledger.end_attempt(self.lease_id, failure.outcome, failure.reason, failure.gone_at)

    def undo(self) -> None:
        """Give back whatever a failed or interrupted acquisition may have rented; what fails here is the reaper's."""
        try:
            self.undo_by_ledger()
        except (KeyError, LedgerError):
            # Without a ledger, or one that was begun anew, there still are the names: each may be a machine.
            with suppress(LeaseError):
                asked = [ReleaseTarget(set(), name) for name in self.requested_names]
                destroy(self.cloud, self.clock, asked, patience_s=UNDO_PATIENCE_S, say=self.say)
        except LeaseError:
            return  # it stays open for the reaper

    def undo_by_ledger(self) -> None:
        """Give the lease back, or close it where the cloud said no each time: then there is nothing to look for."""
        lease = self.ledger.lease(self.lease_id)
        tries = self.ledger.attempts(self.lease_id)
        if lease.machine_id is None and all(one.outcome in ("no-capacity", "refused", "over-limit") for one in tries):
            self.ledger.mark_released(self.lease_id)
        else:
            release_lease(self.cloud, self.ledger, self.clock, self.lease_id, patience_s=UNDO_PATIENCE_S, say=self.say)


def _hours(began: datetime | None, ended: datetime) -> float:
    return 0.0 if began is None else (ended - began).total_seconds() / 3600
