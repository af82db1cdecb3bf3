"""Forecasts a night at the current price of its cloud, or else at the price in the catalogue."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bench.catalog.rows import MachineKind
from bench.cost.forecast import Assumptions, Forecast, Price, forecast_endpoint, forecast_own_host, forecast_rented
from bench.cost.night_forecast import MachineForecast, NightForecast, night_forecast
from bench.errors import CloudDeniedError, LeaseError
from bench.machine_nights import machine_nights
from bench.record import NightRecord
from bench.suite.machine import Machine
from bench.suite.pins import PinnedPrice
from catalog.engine_check import doubts_of_engine
from catalog.read import machine_size, read_catalog
from infra.clouds.by_name import RENTED
from infra.clouds.cloud import Cloud
from infra.engines.secret_environment import secret_doubts
from infra.leases.offers import fitting, lease_request_of
from infra.models.bucket_lookup import without_unset_bucket
from infra.settings import Settings


def forecast_night(
    settings: Settings,
    night: NightRecord,
    cloud: Cloud | None,
    download_mb_per_s: float | None = None,
    pinned: Sequence[PinnedPrice] = (),
) -> NightForecast:
    """Estimate a night on each of its machines, as `forecast` does for one."""
    night = without_unset_bucket(settings, night)
    found = [
        MachineForecast(one, forecast(settings, one, cloud, download_mb_per_s, pinned)) for one in machine_nights(night)
    ]
    return night_forecast(night, found, is_parallel=night.where.is_rented)


def forecast(
    settings: Settings,
    night: NightRecord,
    cloud: Cloud | None,
    download_mb_per_s: float | None = None,
    pinned: Sequence[PinnedPrice] = (),
) -> Forecast:
    """Estimate a night of one machine on its target; the price is requested from `cloud`, None if it is not set up.

    Without an answer it is that of the suite's lock, `pinned`, or else of the catalogue.

    A host of one's own is not contacted. A cloud that does not respond becomes a doubt; one that rejects the token
    raises CloudDeniedError.
    """
    catalog, machine = read_catalog(), night.suite.machine
    speed = download_mb_per_s * 1e6 if download_mb_per_s else None
    assumed = Assumptions(bool(settings.s3_bucket), settings.s3_endpoint, speed)
    if night.where.url is not None:
        return forecast_endpoint(night, catalog)
    if night.where.host is not None:
        expected = forecast_own_host(night, catalog, assumed)
    else:
        size = machine_size(night.target, machine.kind)
        known = next((row for row in pinned if (row.cloud, row.kind) == (night.target, machine.kind)), None)
        now = _price_now(machine, cloud) if cloud else _why_closed(settings, night.target)
        expected = forecast_rented(night, size, _price(machine, now, size, known), catalog, assumed)
    found = doubts_of_engine(night.suite, night.runs, night.target)
    return replace(expected, doubts=(*expected.doubts, *found, *secret_doubts(night.suite)))


def _why_closed(settings: Settings, target: str) -> str:
    """Why the price at a cloud is unknown."""
    known = RENTED.get(target)  # this computer is none of them
    return (known and known.why_closed(settings)) or f"no request was sent to {target}"


def _price(machine: Machine, now: Price | str, size: MachineKind | None, pinned: PinnedPrice | None) -> Price:
    """The price now, or else, with the reason why that is unknown, that of an earlier day."""
    if isinstance(now, str):
        return _pinned_price(pinned, now) if pinned else _catalog_price(machine, size, now)
    if pinned and now.usd_per_hour != pinned.usd_per_hour:
        moved = f"the price is no longer that of the suite's lock, {pinned.usd_per_hour:.2f} USD/h on {pinned.as_of}"
        return replace(now, doubt=moved)
    return now


def _price_now(machine: Machine, cloud: Cloud) -> Price | str:
    """The price at the cloud; a sentence why there is none."""
    request = replace(
        lease_request_of(machine), usd_per_hour_max=None, budget_usd=None
    )  # show a price above the limit too
    try:
        fine = fitting(cloud.offers(), cloud.regions(), request, cloud.name)
    except CloudDeniedError:
        raise
    except LeaseError as error:
        return str(error)
    if not fine:
        return f"{cloud.name} has no capacity for {machine.kind} now"
    first, now = fine[0], datetime.now(UTC)
    where = f" in {first.region}" if first.region else ""
    return Price(first.usd_per_hour, f"{cloud.name} for {first.kind}{where}, {now:%Y-%m-%d %H:%M} UTC")


def _pinned_price(pinned: PinnedPrice, why: str) -> Price:
    return Price(pinned.usd_per_hour, f"the suite's lock, {pinned.as_of}", f"the price may be out of date: {why}")


def _catalog_price(machine: Machine, size: MachineKind | None, why: str) -> Price:
    if size is None or size.usd_per_hour is None:
        doubt = f"no price known for {machine.kind}: {why}, and the catalogue has none; set the settings of its cloud"
        return Price(None, "unknown", doubt)
    return Price(size.usd_per_hour, f"the catalogue, {size.price_date}", f"the price may be out of date: {why}")
