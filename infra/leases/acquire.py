"""Take a lease: each attempt is written to the ledger before its call, and a lost reply is resolved by a search.

A call whose reply was lost is never repeated. The machine is searched by its name until the cloud's lists have settled,
and used if it is found. Only then does a new attempt begin, under a new name.
"""

import uuid
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NoReturn

from bench.errors import (
    CloudDeniedError,
    CloudError,
    CloudLimitError,
    CloudRefusedError,
    LeaseError,
    LostReplyError,
    NoCapacityError,
)
from bench.machine.names import MachineName
from infra.clock import Clock
from infra.clouds.cloud import Cloud, CloudMachine, MachineOrder, MisnamedMachineError, Offer, time_at
from infra.leases.activation import ActivationTimeouts, AttemptFailure, wait_until_up
from infra.leases.create import create, search
from infra.leases.offer_tries import OfferTries
from infra.leases.offers import (
    LeaseRequest,
    elsewhere,
    fitting,
    image_for,
    intent_of,
    lacks_capacity,
    most_usd,
    why_too_dear,
)
from infra.leases.release import ReleaseTarget, destroy
from infra.leases.undo import undo
from infra.ledger.lease import Lease
from infra.ledger.ledger import Ledger
from infra.reporting import Say, silent

LOST_MAX = 3  # attempts whose reply was lost and whose machine never appeared
ROUND_PAUSE_S, ROUND_PAUSE_MAX_S = 30.0, 600.0


def take_lease(
    cloud: Cloud,
    ledger: Ledger,
    clock: Clock,
    request: LeaseRequest,
    *,
    night: str,
    say: Say = silent,
) -> Lease:
    """Rent the first available machine of the plan, and return its lease once it is active and has an address.

    Called again by the same process for the same machine of the night, it continues the lease it began. Raises
    LeaseError where the cloud does not know the kind, where no offer is affordable or available, where the machine of
    each offer failed, and where it refuses; nothing stays rented.
    """
    acquisition = _Acquisition(cloud, ledger, clock, request, night, say)
    begun = [lease for lease in ledger.own_leases(night, request.machine) if lease.cloud == cloud.name]
    try:
        for one in begun:
            if one.lease_id not in request.beside and one.state in ("intended", "held") and acquisition.take_up(one):
                return ledger.lease(one.lease_id)
        return acquisition.by_plan()
    except BaseException:
        undo(cloud, ledger, clock, acquisition.lease_id, acquisition.requested_names, say)
        raise


@dataclass
class _Acquisition:
    """A lease that is being taken."""

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
    tries: OfferTries = field(default_factory=OfferTries)
    failures: list[AttemptFailure] = field(default_factory=list)
    requested_names: list[str] = field(default_factory=list)  # of the machines that were requested
    suggested: tuple[Offer, ...] = ()  # by the cloud, when it last had no capacity

    def by_plan(self) -> Lease:
        """Repeat the plan's rounds until a machine is active or the time is over."""
        until_s = self.clock.monotonic() + self.request.patience_s
        pause_s = ROUND_PAUSE_S
        while True:
            if self.one_round():
                return self.ledger.lease(self.lease_id)
            if self.clock.monotonic() + pause_s > until_s:
                raise NoCapacityError(self.why_no_machine("available now"))
            self.say(f"{self.cloud.name} has no such machine now; trying again in {pause_s:.0f} s")
            self.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, ROUND_PAUSE_MAX_S)

    def one_round(self) -> bool:
        """Try each offer of the plan; whether one resulted in a machine. LeaseError where none is left for later."""
        offers = self.cloud.offers()
        planned = self.affordable(fitting(offers, self.cloud.regions(), self.request, self.cloud.name))
        if self.try_each(deque(planned)):
            return True
        if self.tries.are_used_up(planned) and not lacks_capacity(offers, self.request):
            raise LeaseError(self.why_no_machine("that can be used"))
        return False

    def try_each(self, plan: deque[Offer]) -> bool:
        """Try these offers once, and others before an offer again; whether one resulted in a machine."""
        self.tries.begin_round()
        while plan:
            offer = plan.popleft()
            if self.tries.is_over(offer) or self.is_too_dear(offer):
                continue
            failure = self.try_offer(offer)
            if failure is None:
                return True
            self.failures.append(failure)
            self.tries.count(offer, failure.outcome)
            if failure.outcome == "no-capacity":
                plan.extendleft(reversed([near for near in self.suggested if self.tries.is_new(near)]))
            elif failure.outcome == "unanswered":
                self.lost += 1
                plan.appendleft(offer)
            else:
                plan.append(offer)  # the failure may be of this one machine; but other offers come first
        return False

    def affordable(self, offers: list[Offer]) -> list[Offer]:
        """The offers that the budget still allows; LeaseError where it allows none."""
        left = [offer for offer in offers if not self.is_too_dear(offer)]
        if offers and not left:
            cheapest = min(offers, key=lambda offer: offer.usd_per_hour)
            why = why_too_dear(cheapest, self.request, self.spent_usd())
            raise LeaseError(f"{self.cloud.name}: {why}; nothing is rented after {self.attempt} attempts")
        return left

    def is_too_dear(self, offer: Offer) -> bool:
        """Whether earlier attempts have used up the budget for this offer."""
        return bool(self.attempt) and why_too_dear(offer, self.request, self.spent_usd()) is not None

    def spent_usd(self) -> float:
        """The most that machines of earlier attempts can have cost, with the cloud's minimum charge."""
        return most_usd(self.ledger.attempts(self.lease_id), self.clock.now())

    def why_no_machine(self, what: str) -> str:
        """The message for a plan that resulted in no machine."""
        kinds = " or ".join(dict.fromkeys(choice.kind for choice in self.request.choices))
        last = f"; the last attempt failed: {self.failures[-1].reason}" if self.failures else ""
        return (
            f"{self.cloud.name} has no {kinds} {what}, after {self.attempt} attempts{last}; nothing is rented: "
            "try again later, or add regions or alternatives to the suite's [machine]"
        )

    def try_offer(self, offer: Offer) -> AttemptFailure | None:
        """Make one attempt, written to the ledger before and after; None where its machine is active."""
        self.attempt += 1
        self.suggested = ()
        account, cloud_now = self.cloud.account(), time_at(self.cloud, self.clock)
        expires_at = cloud_now + timedelta(minutes=self.request.minutes)
        ahead_s = (cloud_now - self.clock.now()).total_seconds()
        name = MachineName(self.lease_id, self.attempt, expires_at, self.cloud.prefix)
        intent = replace(intent_of(self.request, offer, expires_at), night=self.night, cloud=self.cloud.name)
        named = replace(intent, name=str(name), attempt=self.attempt, account=account, cloud_ahead_s=ahead_s)
        self.ledger.intend(self.lease_id, named)
        self.requested_names.append(str(name))
        failure = self.create_and_wait(MachineOrder(name, offer, image_for(offer, self.request), self.night))
        self.end_attempt(failure)
        if failure is not None:
            self.say(f"attempt {self.attempt}, {offer.kind} in {offer.region}: {failure.reason}")
        return failure

    def create_and_wait(self, order: MachineOrder) -> AttemptFailure | None:
        """Request the machine, record it, and wait until it is active."""
        try:
            found = create(self.cloud, self.clock, order, self.request.minutes * 60)
        except NoCapacityError as error:
            self.suggested = elsewhere(order.offer, error.regions, self.request)
            return AttemptFailure("no-capacity", str(error))
        except LostReplyError as error:
            if self.lost + 1 >= LOST_MAX:
                raise
            return AttemptFailure("unanswered", str(error))
        except CloudLimitError as error:
            self.ledger.end_attempt(self.lease_id, "over-limit", str(error))
            raise CloudLimitError(f"{error}; {self.our_machines()}") from error
        except (CloudDeniedError, CloudRefusedError) as error:
            self.ledger.end_attempt(self.lease_id, "refused", str(error))
            raise
        except MisnamedMachineError as error:
            self.give_back(error)
        return self.hold_and_wait(found, order.offer)

    def give_back(self, error: MisnamedMachineError) -> NoReturn:
        """Release a machine that could not be found again, and raise why; the lease stays open while it exists."""
        self.ledger.hold(self.lease_id, error.machine_id)
        try:
            self.delete_unwanted([ReleaseTarget({error.machine_id}, None)])
        except LeaseError as left:
            raise LeaseError(f"{error}; {left}") from left
        self.ledger.end_attempt(self.lease_id, "refused", str(error))
        raise CloudRefusedError(f"{error}; it is released") from error

    def our_machines(self) -> str:
        """Which of the account's machines are ours, as a sentence."""
        try:
            names = ", ".join(found.name for found in self.cloud.find_ours())
        except CloudError:
            return "its machines could not be listed"
        return f"machines of Nightbench: {names}" if names else "none of its machines belongs to Nightbench"

    def hold_and_wait(self, found: CloudMachine, offer: Offer) -> AttemptFailure | None:
        """Record a machine and wait until it is active; one that fails, or costs too much, is released."""
        # Of the offered price and the machine's price, the higher one counts.
        paid = replace(offer, usd_per_hour=max(offer.usd_per_hour, found.usd_per_hour or 0.0))
        self.ledger.hold(self.lease_id, found.machine_id, paid.usd_per_hour)
        found = self.delete_duplicates(found)
        too_dear = why_too_dear(paid, self.request)
        if too_dear is None and paid != offer:
            why = self.ledger.why_over_month(self.lease_id, intent_of(self.request, paid, self.clock.now()))
            too_dear = why and f"{paid.kind} costs {paid.usd_per_hour:.2f} USD/h: {why}"
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
        """Of all machines of this name, keep the one with the lowest id, or the one that is active; delete the rest."""
        with suppress(CloudError):  # repeated when the machine is active, and when it is released
            same = self.cloud.find(found.name)
            kept = found if is_up or not same else same[0]
            others = [one.machine_id for one in same if one.machine_id != kept.machine_id]
            if others:
                what = f"keeping {kept.machine_id}, deleting {', '.join(others)}"
                self.say(f"more than one machine is named {found.name}: {what}")
                self.ledger.hold(self.lease_id, kept.machine_id)
                self.delete_unwanted([ReleaseTarget({machine_id}, None) for machine_id in others])
            return kept
        return found

    def delete_unwanted(self, targets: list[ReleaseTarget]) -> None:
        """Delete machines that are not needed; raises LeaseError where one stays."""
        left = destroy(self.cloud, self.clock, targets, patience_s=self.request.minutes * 60, say=self.say)
        if left:
            raise LeaseError(
                f"{left[0]} could not be released and is still billed: {left[0].trouble}; run nightbench reap"
            )

    def take_up(self, lease: Lease) -> bool:
        """Continue a lease that this process began: find its machine, or end the attempt; whether it is active now."""
        self.lease_id, self.attempt = lease.lease_id, lease.attempt
        if lease.state == "held" and lease.address is not None:
            return True
        found = search(self.cloud, self.clock, lease.name or "")
        offer = Offer(lease.kind or "", lease.usd_per_hour, lease.region, lease.is_spot)
        failure = (
            self.hold_and_wait(found, offer) if found else AttemptFailure("unanswered", "its machine never appeared")
        )
        self.end_attempt(failure)
        return failure is None

    def end_attempt(self, failure: AttemptFailure | None) -> None:
        """Write the attempt's outcome to the ledger."""
        if failure is None:
            self.ledger.end_attempt(self.lease_id, "rented")
        else:
            self.ledger.end_attempt(self.lease_id, failure.outcome, failure.reason, failure.gone_at)
