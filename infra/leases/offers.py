"""The lease request of a night, and the offers that match it in the order in which they are tried."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bench.errors import LeaseError
from bench.suite.machine import SPOT_ENDING, Machine, Spot
from bench.suite.pins import PinnedPrice
from infra.clouds.cloud import Cloud, Offer, Snapshot
from infra.leases.nets import Unguarded
from infra.ledger.lease import Lease
from infra.ledger.ledger import Attempt, Intent
from infra.ledger.month import NOTHING_KEPT, KeptCosts

BILLED_MINUTES_MIN = 5.0  # the highest minimum charge known for a GPU machine


@dataclass(frozen=True)
class Choice:
    """A kind of machine, in one region or in any."""

    kind: str
    region: str | None = None


@dataclass(frozen=True)
class LeaseRequest:
    """What to rent: one of these kinds, in order of preference, for this time and at most this price."""

    choices: tuple[Choice, ...]
    minutes: float
    regions: tuple[str, ...] = ()  # in this order; empty: any, as the cloud lists them
    spot: Spot = "never"
    image: str | None = None
    golden: Snapshot | None = None  # booted in place of `image` wherever it is, on GPUs of `golden_vendor`
    golden_vendor: str | None = None  # whose GPU driver is in it; None: any
    usd_per_hour_max: float | None = None
    budget_usd: float | None = None
    month_usd_max: float | None = None  # of all in a calendar month
    kept: KeptCosts = NOTHING_KEPT  # what counts in this month beside leases
    limit: str = "machine.budget_usd"  # the key of the suite that sets it
    spent_usd: float = 0.0  # of the budget, by earlier leases of the night
    unguarded: Unguarded | None = None  # without the machine's own switch; None: it has one, or needs none
    machine: str | None = None  # its name in a suite of several machines
    patience_s: float = 0.0  # how long to wait for capacity, all rounds of the plan together
    beside: frozenset[str] = frozenset()  # leases of this machine of the night that are others


def lease_request_of(machine: Machine, *, patience_s: float = 0.0) -> LeaseRequest:
    """The lease request of a suite's [machine] table."""
    return LeaseRequest(
        choices=(Choice(machine.kind), *(Choice(other.kind, other.region) for other in machine.alternatives)),
        minutes=machine.lease_minutes,
        regions=machine.regions,
        spot=machine.spot,
        image=machine.image,
        usd_per_hour_max=machine.usd_per_hour_max,
        budget_usd=machine.budget_usd,
        machine=machine.name,
        patience_s=patience_s,
    )


def beside_leases(request: LeaseRequest, leases: Sequence[Lease]) -> LeaseRequest:
    """The request of a further machine for a command on several: like the first one, and at once or not at all.

    While it is waited for, the others would be billed.
    """
    if not leases:
        return request
    first = leases[0]
    return replace(
        request,
        choices=(Choice(first.kind or request.choices[0].kind),),
        regions=() if first.region is None else (first.region,),
        spot="never",  # its kind says how it is paid for
        patience_s=0.0,
        beside=frozenset(lease.lease_id for lease in leases),
    )


def of_nodes(request: LeaseRequest, nodes: int) -> LeaseRequest:
    """The request of one of so many machines that share the budget of one."""
    if nodes == 1 or request.budget_usd is None:
        return request
    share = f"{request.limit}, of which each of {nodes} nodes may spend"
    return replace(request, budget_usd=request.budget_usd / nodes, limit=share)


def kinds_of(machine: Machine) -> tuple[str, ...]:
    """Every kind that a suite may rent, in the order of trying."""
    choices = lease_request_of(machine).choices
    return tuple(kind for choice in choices for kind in _kinds(choice.kind, machine.spot))


def pin_prices(cloud: Cloud, machine: Machine) -> tuple[PinnedPrice, ...]:
    """The lowest price of each kind that the suite may rent, its spot variants included; a kind not offered has none.

    Raises CloudError if the cloud does not list its prices.
    """
    wanted, today = kinds_of(machine), datetime.now(UTC).date()
    lowest: dict[str, float] = {}
    for offer in cloud.offers():
        for kind in (kind for kind in wanted if _is_of(offer, kind)):
            lowest[kind] = min(offer.usd_per_hour, lowest.get(kind, offer.usd_per_hour))
    return tuple(
        PinnedPrice(cloud=cloud.name, kind=kind, usd_per_hour=usd, as_of=today) for kind, usd in lowest.items()
    )


def after_spending(request: LeaseRequest, spent_usd: float) -> LeaseRequest:
    """The request of a night that has spent this much: its minutes shrink with the rest of its budget."""
    if request.budget_usd is None or spent_usd <= 0:
        return request
    left = max(0.0, 1.0 - spent_usd / request.budget_usd)
    return replace(request, spent_usd=spent_usd, minutes=request.minutes * left)


def image_for(offer: Offer, request: LeaseRequest) -> str | None:
    """The image that a machine of this offer boots; None: the cloud's default for its kind."""
    golden, vendor = request.golden, request.golden_vendor
    if golden is not None and offer.region in golden.regions and vendor in {None, offer.gpu_vendor}:
        return golden.snapshot_id
    return request.image


def intent_of(request: LeaseRequest, offer: Offer, expires_at: datetime) -> Intent:
    """What the ledger has of a machine of this offer before it is requested, without its night, cloud and name."""
    return Intent(
        night="",
        cloud="",
        usd_per_hour=offer.usd_per_hour,
        expires_at=expires_at,
        kind=offer.kind,
        region=offer.region,
        is_spot=offer.is_spot,
        budget_usd=request.budget_usd,
        image=image_for(offer, request),
        machine=request.machine,
        lasts_s=request.minutes * 60,
        month_usd_max=request.month_usd_max,
        kept=request.kept,
    )


def fitting(offers: Sequence[Offer], regions: Sequence[str], request: LeaseRequest, where: str) -> list[Offer]:
    """The available offers that match a request, in the order in which to try them; empty without capacity.

    Raises LeaseError where the cloud knows none of the kinds, or not a region, or where every offer costs too much.
    """
    wanted = [kind for choice in request.choices for kind in _kinds(choice.kind, request.spot)]
    known = [offer for offer in offers if any(_is_of(offer, kind) for kind in wanted)]
    if not known:
        kinds = " or ".join(map(repr, dict.fromkeys(wanted)))
        offered = ", ".join(sorted({offer.kind for offer in offers})) or "nothing"
        raise LeaseError(f"{where} offers no machine of kind {kinds}, only {offered}: change machine.kind or --target")
    _require_regions(regions, request, where)
    if all(why_too_dear(offer, request) for offer in known):
        cheapest = min(known, key=lambda offer: offer.usd_per_hour)
        raise LeaseError(f"{where}: {why_too_dear(cheapest, request)}; nothing was rented")
    fine = [offer for offer in known if offer.is_available and not why_too_dear(offer, request)]
    return list(dict.fromkeys(
        offer
        for kind, region in _places(request)
        for offer in fine
        if _is_of(offer, kind) and region in (None, offer.region)
    ))  # fmt: skip


def lacks_capacity(offers: Sequence[Offer], request: LeaseRequest) -> bool:
    """Whether a kind that the cloud offers at an allowed price is not available where a request takes it."""
    allowed = [offer for offer in offers if not why_too_dear(offer, request)]
    return any(
        any(_is_of(offer, kind) for offer in allowed)
        and not any(_is_of(offer, kind) and offer.is_available and region in (None, offer.region) for offer in allowed)
        for kind, region in _places(request)
    )


def _places(request: LeaseRequest) -> Iterator[tuple[str, str | None]]:
    """Each kind and region of a request, in the order in which to try them; no region: any."""
    for choice in request.choices:
        for kind in _kinds(choice.kind, request.spot):
            for region in (choice.region,) if choice.region else request.regions or (None,):
                yield kind, region


def elsewhere(offer: Offer, regions: Sequence[str], request: LeaseRequest) -> tuple[Offer, ...]:
    """The same offer in each of these regions in which a request takes its kind."""
    choices = [
        choice for choice in request.choices if any(_is_of(offer, kind) for kind in _kinds(choice.kind, request.spot))
    ]
    allowed = {
        region for choice in choices for region in ((choice.region,) if choice.region else request.regions or regions)
    }
    return tuple(replace(offer, region=region) for region in regions if region in allowed)


def _require_regions(regions: Sequence[str], request: LeaseRequest, where: str) -> None:
    requested = [*request.regions, *(choice.region for choice in request.choices if choice.region)]
    unknown = [region for region in requested if regions and region not in regions]
    if unknown:
        known = ", ".join(sorted(regions))
        raise LeaseError(f"{where} has no region {unknown[0]!r}, only {known}: change machine.regions in the suite")


def why_too_dear(offer: Offer, request: LeaseRequest, spent_usd: float = 0.0) -> str | None:
    """Why an offer costs more than the request allows, as a sentence; None where it does not."""
    price = f"{offer.kind} costs {offer.usd_per_hour:.2f} USD/h"
    if request.usd_per_hour_max is not None and offer.usd_per_hour > request.usd_per_hour_max:
        return f"{price}, more than machine.usd_per_hour_max = {request.usd_per_hour_max:.2f}: raise it, or wait"
    lease_usd = offer.usd_per_hour * max(request.minutes, BILLED_MINUTES_MIN) / 60
    if request.unguarded is not None and (why := request.unguarded.why_refused(lease_usd)):
        return why
    spent_usd += request.spent_usd
    most = spent_usd + lease_usd
    if request.budget_usd is not None and most > request.budget_usd:
        spent = f" after {spent_usd:.2f} USD spent" if spent_usd else ""
        return (
            f"{price}, so {request.minutes:g} minutes cost up to {most:.2f} USD{spent}, more than "
            f"{request.limit} = {request.budget_usd:.2f}: raise it, or shorten machine.lease_minutes"
        )
    return None


def most_usd(attempts: Iterable[Attempt], now: datetime) -> float:
    """The most that the machines of these attempts can have cost until now, with the cloud's minimum charge."""
    return sum(
        one.usd_per_hour * max(((one.ended_at or now) - one.rented_at).total_seconds() / 3600, BILLED_MINUTES_MIN / 60)
        for one in attempts
        if one.rented_at is not None
    )


def _is_of(offer: Offer, kind: str) -> bool:
    """Whether an offer is of a kind, whose ending says how it is paid for; a cloud may say that beside the kind."""
    if offer.kind.endswith(SPOT_ENDING) or not offer.is_spot:
        return offer.kind == kind
    return offer.kind + SPOT_ENDING == kind


def _kinds(kind: str, spot: Spot) -> tuple[str, ...]:
    """A kind and its spot variant, by the spot policy; a kind that is spot already stays alone."""
    if kind.endswith(SPOT_ENDING) or spot == "never":
        return (kind,)
    return (kind + SPOT_ENDING,) if spot == "only" else (kind + SPOT_ENDING, kind)
