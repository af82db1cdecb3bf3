"""The prices of a suite's kinds of machine now, for its lock."""

from datetime import UTC, datetime

from bench.suite.machine import Machine
from bench.suite.pins import PinnedPrice
from infra.clouds.cloud import Cloud
from infra.leases.offers import kinds_of


def pin_prices(cloud: Cloud, machine: Machine) -> tuple[PinnedPrice, ...]:
    """The lowest price of each kind that the suite may rent, its spot variants included; a kind not offered has none.

    Raises CloudError if the cloud does not list its prices.
    """
    wanted, today = kinds_of(machine), datetime.now(UTC).date()
    lowest: dict[str, float] = {}
    for offer in cloud.offers():
        if offer.kind in wanted:
            lowest[offer.kind] = min(offer.usd_per_hour, lowest.get(offer.kind, offer.usd_per_hour))
    return tuple(
        PinnedPrice(cloud=cloud.name, kind=kind, usd_per_hour=usd, as_of=today) for kind, usd in lowest.items()
    )
