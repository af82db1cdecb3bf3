"""Forecasts a night at the current price of its cloud, or else at the price in the catalogue."""

from dataclasses import replace
from datetime import UTC, datetime

from bench.catalog.rows import MachineKind
from bench.cost.forecast import Assumptions, Forecast, Price, forecast_own_host, forecast_rented
from bench.errors import CloudDeniedError, LeaseError
from bench.record import NightRecord
from bench.suite.machine import Machine, hardware_of
from catalog.engine_check import doubts_of_engine
from catalog.read import read_catalog
from infra.clouds.cloud import Cloud
from infra.clouds.static import is_own
from infra.leases.offers import fitting, lease_request_of
from infra.settings import Settings


def forecast(
    settings: Settings, night: NightRecord, cloud: Cloud | None, download_mb_per_s: float | None = None
) -> Forecast:
    """Estimate a night on its target; the price is requested from `cloud`, None if no token is set.

    A host of one's own is not contacted. A cloud that does not respond becomes a doubt; one that rejects the token
    raises CloudDeniedError.
    """
    catalog, machine = read_catalog(), night.suite.machine
    speed = download_mb_per_s * 1e6 if download_mb_per_s else None
    assumed = Assumptions(bool(settings.s3_bucket), settings.s3_endpoint, speed)
    if is_own(night.target):
        expected = forecast_own_host(night, catalog, assumed)
    else:
        size = catalog.size(night.target, machine.kind) or catalog.size(night.target, hardware_of(machine.kind))
        expected = forecast_rented(night, size, _price(machine, cloud, size), catalog, assumed)
    return replace(expected, doubts=(*expected.doubts, *doubts_of_engine(night.suite, night.target)))


def _price(machine: Machine, cloud: Cloud | None, size: MachineKind | None) -> Price:
    if cloud is None:
        return _catalog_price(machine, size, "no cloud token is set")
    request = replace(
        lease_request_of(machine), usd_per_hour_max=None, budget_usd=None
    )  # show a price above the limit too
    try:
        fine = fitting(cloud.offers(), cloud.regions(), request, cloud.name)
    except CloudDeniedError:
        raise
    except LeaseError as error:
        return _catalog_price(machine, size, str(error))
    if not fine:
        return _catalog_price(machine, size, f"{cloud.name} has no capacity for {machine.kind} now")
    first, now = fine[0], datetime.now(UTC)
    where = f" in {first.region}" if first.region else ""
    return Price(first.usd_per_hour, f"{cloud.name} for {first.kind}{where}, {now:%Y-%m-%d %H:%M} UTC")


def _catalog_price(machine: Machine, size: MachineKind | None, why: str) -> Price:
    if size is None or size.usd_per_hour is None:
        doubt = f"no price known for {machine.kind}: {why}, and the catalogue has none; set NIGHTBENCH_DO_TOKEN"
        return Price(None, "unknown", doubt)
    return Price(size.usd_per_hour, f"the catalogue, {size.price_date}", f"the price may be out of date: {why}")
