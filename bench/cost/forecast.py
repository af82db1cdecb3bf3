"""What a night is expected to take and cost, and what makes that doubtful."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bench.catalog.catalog import Catalog
from bench.catalog.rows import MachineKind
from bench.cost.estimate import MEASURE, Estimate, HostPlan, estimate_night, estimate_prepare
from bench.cost.host_requirements import SPARE, Need, needs_of
from bench.cost.kept import BUCKET, kept_by_month
from bench.cost.lease_cost import bucket_usd_per_month, kept_usd_per_month
from bench.cost.memory import Fit, fits_of, tightest
from bench.cost.replica import model_bytes
from bench.engines.by_name import ENGINES
from bench.machine_nights import budget_of
from bench.record import NightRecord
from bench.search.search import loads_of
from bench.suite.suite import Suite
from bench.suite.workload import Workload

OF_CLIENT = ("calibrate", MEASURE, "keep")  # the stages of a night on a server that already runs


@dataclass(frozen=True)
class Price:
    """What an hour costs and where the price comes from; None if no price is known."""

    usd_per_hour: float | None
    source: str
    doubt: str | None = None


@dataclass(frozen=True)
class Assumptions:
    """What the settings and the caller add to an estimate."""

    has_bucket: bool = False
    bucket_endpoint: str | None = None  # None: Amazon's
    download_bytes_per_s: float | None = None  # None: the catalogue's pace


@dataclass(frozen=True)
class Forecast:
    """The expected time and cost of a night, on a fresh machine and on one booted from the golden image.

    On a host of one's own, `warm` is a later night there, with engine and model in place.
    """

    price: Price
    cold: Estimate
    warm: Estimate
    prepare: Estimate | None  # None if nothing is rented
    snapshot_usd_per_month: float
    volume_usd_per_month: float | None  # None if the suite caches no model on a volume
    bucket_usd_per_month: float | None  # None if the suite caches no model in a bucket, or its price is unknown
    fill_usd_max: float | None  # the most that filling the bucket adds to a night
    fit: Fit | None  # None if the catalogue lacks the model or the machine
    usd_max: float | None  # cost of the whole lease
    doubts: tuple[str, ...]
    needs: tuple[Need, ...] = ()  # requirements on a host of one's own; a rented machine is prepared
    fits: Mapping[str, Fit] = field(default_factory=dict)  # of each model, by its name, as far as it is known


def forecast_rented(
    night: NightRecord, size: MachineKind | None, price: Price, catalog: Catalog, assumed: Assumptions
) -> Forecast:
    """Estimate a night on a rented machine of this size; `size` is None if the catalogue lacks it."""
    machine = night.suite.machine
    one = HostPlan(price.usd_per_hour or 0.0, size, download_bytes_per_s=assumed.download_bytes_per_s)
    site = replace(one, usd_per_hour=night.suite.nodes * one.usd_per_hour, has_new_build=_may_be_new(night.suite))
    cold, warm = (
        estimate_night(night.suite, night.runs, replace(site, has_snapshot=has), catalog) for has in (False, True)
    )
    doubts, price = _doubts(night.suite, price, cold), _of_nodes(price, night.suite.nodes)
    fits = fits_of(night.suite, night.runs, size, catalog)
    volume_gib, fill_minutes = night.suite.model.cache_volume_gib, night.suite.model.cache_bucket_minutes
    return Forecast(
        price=price,
        cold=cold,
        warm=warm,
        prepare=estimate_prepare(one, catalog) if price.usd_per_hour else None,
        snapshot_usd_per_month=kept_usd_per_month(0.0, catalog.pace["snapshot_gb"], catalog.pace),
        volume_usd_per_month=None if volume_gib is None else kept_usd_per_month(volume_gib, 0.0, catalog.pace),
        bucket_usd_per_month=_bucket_usd(night.suite, catalog, assumed),
        fill_usd_max=fill_minutes / 60 * price.usd_per_hour if fill_minutes and price.usd_per_hour else None,
        fit=tightest(fits),
        fits=fits,
        usd_max=None if price.usd_per_hour is None else price.usd_per_hour * machine.lease_minutes / 60,
        doubts=(
            *doubts,
            *_doubts_of_volume(night.suite, catalog),
            *_doubts_of_bucket(night.suite, catalog, assumed),
        ),
    )


def _may_be_new(suite: Suite) -> bool:
    """Whether a night may find a newer build of its engine than the one that an earlier night left."""
    return any(engine.track is not None for engine in suite.engines)


def _of_nodes(price: Price, nodes: int) -> Price:
    """The price of so many machines that are rented together."""
    if nodes == 1 or price.usd_per_hour is None:
        return price
    return replace(price, usd_per_hour=nodes * price.usd_per_hour, source=f"{nodes} machines, {price.source}")


def forecast_own_host(night: NightRecord, catalog: Catalog, assumed: Assumptions) -> Forecast:
    """Estimate a night on a host of one's own: no price, no boot, no snapshot, no volume."""
    suite = night.suite
    fresh = HostPlan(0.0, download_bytes_per_s=assumed.download_bytes_per_s, is_own=True)
    ready = replace(fresh, has_snapshot=True, has_model=True, has_new_build=_may_be_new(suite))
    cold, warm = (estimate_night(suite, night.runs, site, catalog) for site in (fresh, ready))
    price, fits = Price(0.0, "your own host"), fits_of(suite, night.runs, None, catalog)
    return Forecast(
        price=price,
        cold=cold,
        warm=warm,
        prepare=None,
        snapshot_usd_per_month=0.0,
        volume_usd_per_month=None,
        bucket_usd_per_month=_bucket_usd(suite, catalog, assumed),
        fill_usd_max=None,
        fit=tightest(fits),
        fits=fits,
        usd_max=0.0,
        doubts=(
            *_doubts(suite, price, cold),
            *_doubts_of_own_host(suite),
            *_doubts_of_bucket(suite, catalog, assumed),
        ),
        needs=needs_of(suite, catalog),
    )


def forecast_endpoint(night: NightRecord, catalog: Catalog) -> Forecast:
    """Estimate a night on a server that already runs: it is calibrated, measured and kept, and nothing is rented."""
    suite, ready = night.suite, HostPlan(0.0, is_own=True, has_snapshot=True, has_model=True)
    whole = estimate_night(suite, night.runs, ready, catalog)
    ours = replace(whole, stages=tuple(stage for stage in whole.stages if stage.name in OF_CLIENT))
    return Forecast(
        price=Price(0.0, "nothing is rented"),
        cold=ours,
        warm=ours,
        prepare=None,
        snapshot_usd_per_month=0.0,
        volume_usd_per_month=None,
        bucket_usd_per_month=None,
        fill_usd_max=None,
        fit=None,
        usd_max=0.0,
        doubts=tuple(_doubts_of_endpoint(night)),
    )


def _doubts_of_endpoint(night: NightRecord) -> Iterator[str]:
    known = night.suite.endpoint
    if known is None or known.usd_per_mtok_input is None or known.usd_per_mtok_output is None:
        return
    works = [load.workload for run in night.runs for load in loads_of(night.suite, run.scenario)]
    tokens_in = sum(map(_prompt_tokens, works))
    tokens_out = sum(work.total_count * work.osl for work in works)
    usd = (tokens_in * known.usd_per_mtok_input + tokens_out * known.usd_per_mtok_output) / 1e6
    yield (
        f"the endpoint charges at most {usd:.2f} USD at the suite's prices, for {tokens_in:,} tokens of prompts "
        f"and {tokens_out:,} of answers"
    )


def _prompt_tokens(work: Workload) -> int:
    """Tokens of all prompts of a load, as far as known: each turn repeats the turns before it and their answers."""
    turns = work.prompts.turns or 1
    of_conversation = work.isl * turns * (turns + 1) // 2 + work.osl * turns * (turns - 1) // 2
    return work.total_count * of_conversation // turns


def _doubts_of_own_host(suite: Suite) -> Iterator[str]:
    if suite.model.cache_volume_gib is not None:
        yield "model.cache_volume_gib applies to clouds only: the model is stored on the host's own disk"
    if suite.machine.gpu_count and suite.engine.image is None:
        yield (
            "the suite sets no engine.image, so the model would be served on the CPU: set engine.image, or "
            f"{ENGINES[suite.engine.name].SETTING} in nightbench/host.env on the host"
        )


def _doubts_of_volume(suite: Suite, catalog: Catalog) -> Iterator[str]:
    size, weights = suite.model.cache_volume_gib, model_bytes(suite, catalog)
    if size is not None and weights is not None and weights * SPARE > size * 1024**3:
        yield (
            f"model.cache_volume_gib = {size} is too small: the weights need {weights / 1024**3:.0f} GiB plus "
            "spare space, and the night would fail while copying them"
        )


def _bucket_usd(suite: Suite, catalog: Catalog, assumed: Assumptions) -> float | None:
    weights = model_bytes(suite, catalog)
    if suite.model.cache_bucket_minutes is None or weights is None:
        return None
    return bucket_usd_per_month(weights, assumed.bucket_endpoint, catalog.pace)


def _doubts_of_bucket(suite: Suite, catalog: Catalog, assumed: Assumptions) -> Iterator[str]:
    model = suite.model
    if assumed.has_bucket:
        return
    if model.bucket_is_optional and not (model.cache or model.cache_volume_gib):
        weights, month = model_bytes(suite, catalog), kept_by_month(suite, catalog)[BUCKET]
        size = "" if weights is None else f", {weights / 1e9:.0f} GB"
        price = "" if month is None else f", {month:.2f} USD per month at Spaces"
        yield (
            f"no bucket is set, so each night downloads the model from the hub{size}: "
            f"set NIGHTBENCH_S3_BUCKET to cache it{price}"
        )
    elif model.cache_bucket_minutes is not None:
        yield "the night would be refused: model.cache_bucket_minutes needs a bucket, set NIGHTBENCH_S3_BUCKET"


def _doubts(suite: Suite, price: Price, estimate: Estimate) -> Iterator[str]:
    machine = suite.machine
    if price.doubt:
        yield price.doubt
    if machine.usd_per_hour_max is not None and (price.usd_per_hour or 0) > machine.usd_per_hour_max:
        yield f"the price exceeds machine.usd_per_hour_max = {machine.usd_per_hour_max:.2f}: nothing would be rented"
    early, minutes = "would end the night early: the estimate is", estimate.billed_s / 60
    if machine.budget_usd is not None and estimate.usd > machine.budget_usd:
        yield f"{budget_of(suite)} {early} {estimate.usd:.2f} USD"
    if estimate.is_known and minutes > machine.lease_minutes:
        yield f"machine.lease_minutes = {machine.lease_minutes} {early} {minutes:.0f} minutes"
