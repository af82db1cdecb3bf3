"""What a night would take and cost: at the cloud's price of now where it can be asked, else at the catalogue's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bench.catalog.catalog import Catalog
from bench.catalog.rows import MachineKind
from bench.cost.estimate import Estimate, Fit, HostPlan, estimate_night, estimate_prepare, fit_of, model_bytes
from bench.cost.host_requirements import SPARE, Need, needs_of
from bench.cost.lease_cost import bucket_usd_per_month, kept_usd_per_month
from bench.errors import CloudDeniedError, LeaseError
from bench.record import NightRecord
from bench.suite.machine import Machine, hardware_of
from bench.suite.suite import Suite
from catalog.engine_check import doubts_of_engine
from catalog.read import read_catalog
from infra.clouds.cloud import Cloud
from infra.clouds.static import is_own
from infra.leases.offers import fitting, lease_request_of
from infra.settings import Settings


@dataclass(frozen=True)
class Price:
    """What an hour costs and who says so; None where nobody does."""

    usd_per_hour: float | None
    said_by: str
    doubt: str | None = None


@dataclass(frozen=True)
class Forecast:
    """A night before it begins: on a fresh machine, and on one booted from the golden snapshot.

    A host of one's own is fresh once: `warm` is a later night there, with engine and model in place.
    """

    price: Price
    cold: Estimate
    warm: Estimate
    prepare: Estimate | None  # None where nothing is rented
    snapshot_usd_per_month: float
    volume_usd_per_month: float | None  # None where the suite keeps its model on no volume
    bucket_usd_per_month: float | None  # None where the suite keeps its model in no bucket, or nobody prices that
    fill_usd_max: float | None  # what a night that fills the bucket pays more, at most
    fit: Fit | None  # None where model or machine are not in the catalogue
    usd_max: float | None  # what the whole lease costs
    doubts: tuple[str, ...]
    needs: tuple[Need, ...] = ()  # of a host of one's own; a rented machine is made fit


def forecast(night: NightRecord, cloud: Cloud | None, download_mb_per_s: float | None = None) -> Forecast:
    """Estimate a night on its target; `cloud` is asked for its prices, None where there is no token to ask it with.

    A host of one's own is not asked anything: a plan says what the night would demand of it. A cloud that cannot be
    asked is a doubt; one that turns the token away raises CloudDeniedError.
    """
    if is_own(night.target):
        return _on_own_host(night, download_mb_per_s)
    catalog, machine = read_catalog(), night.suite.machine
    size = catalog.size(night.target, machine.kind) or catalog.size(night.target, hardware_of(machine.kind))
    price = _price(machine, cloud, size)
    site = HostPlan(price.usd_per_hour or 0.0, size, download_bytes_per_s=_bytes_per_s(download_mb_per_s))
    cold, warm = (
        estimate_night(night.suite, night.runs, replace(site, has_snapshot=has), catalog) for has in (False, True)
    )
    fit = fit_of(night.suite, night.runs, site, catalog)
    volume_gib, fill_minutes = night.suite.model.cache_volume_gib, night.suite.model.cache_bucket_minutes
    return Forecast(
        price=price,
        cold=cold,
        warm=warm,
        prepare=estimate_prepare(site, catalog) if price.usd_per_hour else None,
        snapshot_usd_per_month=kept_usd_per_month(0.0, catalog.pace["snapshot_gb"], catalog.pace),
        volume_usd_per_month=None if volume_gib is None else kept_usd_per_month(volume_gib, 0.0, catalog.pace),
        bucket_usd_per_month=_bucket_usd(night.suite, catalog),
        fill_usd_max=fill_minutes / 60 * price.usd_per_hour if fill_minutes and price.usd_per_hour else None,
        fit=fit,
        usd_max=None if price.usd_per_hour is None else price.usd_per_hour * machine.lease_minutes / 60,
        doubts=(
            *_doubts(night.suite, price, cold, fit),
            *_doubts_of_volume(night.suite, catalog),
            *_doubts_of_bucket(night.suite),
            *doubts_of_engine(night.suite, night.target),
        ),
    )


def _bytes_per_s(mb_per_s: float | None) -> float | None:
    return mb_per_s * 1e6 if mb_per_s else None


def _on_own_host(night: NightRecord, download_mb_per_s: float | None) -> Forecast:
    """A night on a host of one's own: no price, no boot, no snapshot, no volume."""
    catalog, suite = read_catalog(), night.suite
    fresh = HostPlan(0.0, download_bytes_per_s=_bytes_per_s(download_mb_per_s), is_own=True)
    ready = replace(fresh, has_snapshot=True, has_model=True)
    cold, warm = (estimate_night(suite, night.runs, site, catalog) for site in (fresh, ready))
    price, fit = Price(0.0, "you, whose host it is"), fit_of(suite, night.runs, fresh, catalog)
    return Forecast(
        price=price,
        cold=cold,
        warm=warm,
        prepare=None,
        snapshot_usd_per_month=0.0,
        volume_usd_per_month=None,
        bucket_usd_per_month=_bucket_usd(suite, catalog),
        fill_usd_max=None,
        fit=fit,
        usd_max=0.0,
        doubts=(
            *_doubts(suite, price, cold, fit),
            *_doubts_of_own_host(suite),
            *_doubts_of_bucket(suite),
            *doubts_of_engine(suite, night.target),
        ),
        needs=needs_of(suite, catalog),
    )


def _doubts_of_own_host(suite: Suite) -> Iterator[str]:
    if suite.model.cache_volume_gib is not None:
        yield "model.cache_volume_gib is for clouds: the model goes to the host's own disk, and stays there"
    if suite.machine.gpu_count and suite.engine.image is None:
        yield (
            "the suite names no engine.image: without NIGHTBENCH_VLLM_EXECUTABLE in the host's nightbench/host.env "
            "it would be served on the CPU"
        )


def _doubts_of_volume(suite: Suite, catalog: Catalog) -> Iterator[str]:
    size, weights = suite.model.cache_volume_gib, model_bytes(suite, catalog)
    if size is not None and weights is not None and weights * SPARE > size * 1024**3:
        yield (
            f"model.cache_volume_gib = {size} is too small: the weights take {weights / 1024**3:.0f} GiB, "
            "and the night would end where they do not fit"
        )


def _bucket_usd(suite: Suite, catalog: Catalog) -> float | None:
    weights = model_bytes(suite, catalog)
    if suite.model.cache_bucket_minutes is None or weights is None:
        return None
    return bucket_usd_per_month(weights, Settings().s3_endpoint, catalog.pace)


def _doubts_of_bucket(suite: Suite) -> Iterator[str]:
    if suite.model.cache_bucket_minutes is not None and not Settings().s3_bucket:
        yield "model.cache_bucket_minutes needs a bucket: set NIGHTBENCH_S3_BUCKET, or no night will begin"


def _price(machine: Machine, cloud: Cloud | None, size: MachineKind | None) -> Price:
    if cloud is None:
        return _price_on_record(machine, size, "no token is set to ask with")
    request = replace(
        lease_request_of(machine), usd_per_hour_max=None, budget_usd=None
    )  # what is too dear is told, not hidden
    try:
        fine = fitting(cloud.offers(), cloud.regions(), request, cloud.name)
    except CloudDeniedError:
        raise
    except LeaseError as error:
        return _price_on_record(machine, size, str(error))
    if not fine:
        return _price_on_record(machine, size, f"{cloud.name} has no {machine.kind} to give now")
    first, now = fine[0], datetime.now(UTC)
    where = f" in {first.region}" if first.region else ""
    return Price(first.usd_per_hour, f"{cloud.name} for {first.kind}{where}, {now:%Y-%m-%d %H:%M} UTC")


def _price_on_record(machine: Machine, size: MachineKind | None, why: str) -> Price:
    if size is None or size.usd_per_hour is None:
        return Price(
            None, "nobody", f"nobody says what {machine.kind} costs: {why}, and the catalogue has no price of it"
        )
    return Price(size.usd_per_hour, f"the catalogue, {size.price_date}", f"the price is not of today: {why}")


def _doubts(suite: Suite, price: Price, estimate: Estimate, fit: Fit | None) -> Iterator[str]:
    machine = suite.machine
    if price.doubt:
        yield price.doubt
    if machine.usd_per_hour_max is not None and (price.usd_per_hour or 0) > machine.usd_per_hour_max:
        yield f"the price is above machine.usd_per_hour_max = {machine.usd_per_hour_max:.2f}: nothing would be rented"
    early, minutes = "ends the night early: the estimate is", estimate.billed_s / 60
    if machine.budget_usd is not None and estimate.usd > machine.budget_usd:
        yield f"machine.budget_usd = {machine.budget_usd:.2f} {early} {estimate.usd:.2f} USD"
    if estimate.is_known and minutes > machine.lease_minutes:
        yield f"machine.lease_minutes = {machine.lease_minutes} {early} {minutes:.0f}"
    if fit is not None and not fit.fits:
        yield f"the load does not fit the memory: it takes {fit.needed_gib:.0f} GiB of {fit.room_gib:.0f}"
