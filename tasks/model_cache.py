"""The bucket that keeps a model between nights: asked before the hub, and filled once the model is on a machine.

It spares a download and no more. Settings that cannot work are refused before anything is rented; from then on nothing
that goes wrong with the bucket ends a night.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import NightbenchError, ObjectStoreError, UsageError
from bench.record import NightRecord
from bench.suite.model import Model
from infra.agent import operations
from infra.ledger.ledger import Lease
from infra.models.bucket_cache import BucketCache
from infra.models.models import PreparedModel
from infra.models.parts import CachedModel, FetchResult, Part
from infra.reporting import Say
from infra.settings import Settings
from infra.storage.object_store import ObjectStore, RequestLimits
from tasks.reaching import machine_of, make_reporter
from tasks.salvage import place_of, require_place
from tasks.spending import spending

STAGE = "cache"
HURRIED = RequestLimits(connect_s=3.0, read_s=10.0, tries=2)  # a machine may be paid for meanwhile


@dataclass(frozen=True)
class BucketLookup:
    """What the bucket has of a model, with addresses to lend; else why it has nothing, where it was asked at all."""

    kept: CachedModel | None = None
    why: str | None = None

    def explain(self, model: PreparedModel) -> PreparedModel:
        """The model, with the reason if it was downloaded from the hub."""
        is_from_hub = model.fetched is not None and not model.fetched.given
        return replace(model, fetched=FetchResult(why=self.why)) if self.why and is_from_hub else model


def require_bucket(model: Model) -> None:
    """Raise UsageError where the suite keeps its model in a bucket that is not set, not there, or refuses the keys.

    One that cannot be reached now is no error: the model comes from the hub, then.
    """
    if model.cache_bucket_minutes is None:
        return
    settings = Settings()
    try:
        require_place(settings)
        _shelf(settings, model).find()
    except UsageError as error:
        raise UsageError(f"the suite keeps its model in a bucket (model.cache_bucket_minutes), but {error}") from error
    except ObjectStoreError as error:
        if error.is_refusal:
            raise UsageError(f"the suite keeps its model in a bucket (model.cache_bucket_minutes): {error}") from error


def look_in_bucket(model: Model, say: Say) -> BucketLookup:
    """The model as the bucket has it, where the suite keeps it in one."""
    if model.cache_bucket_minutes is None:
        return BucketLookup()
    settings = Settings()
    try:
        kept = _shelf(settings, model).find()
    except NightbenchError as error:
        found = BucketLookup(why=str(error))
    else:
        found = BucketLookup(kept, None if kept else f"{place_of(settings)} does not have the model yet")
    if found.why:
        say(f"the model comes from the hub: {found.why}")
    return found


def _shelf(settings: Settings, model: Model) -> BucketCache:
    return BucketCache(ObjectStore(require_place(settings), HURRIED), model.source)


def fill_bucket(night: NightRecord, lease: Lease, model: PreparedModel) -> None:
    """Have the machine upload what the bucket lacks of its model, for as long as the suite allows; a stage of its own.

    Before the night calibrates anything, since an upload beside a measurement would spoil it. What fails here is said.
    """
    minutes, log = night.suite.model.cache_bucket_minutes, get_run_logger()
    if not minutes:
        return
    try:
        shelf = _shelf(Settings(), night.suite.model)
        files = machine_of(lease).run(operations.list_model, make_reporter(), model)
        damaged = model.fetched.damaged if model.fetched else ()
        if damaged or not shelf.has(files):
            with spending(night, lease.lease_id, STAGE, most_s=minutes * 60.0):
                upload_model(lease, model, shelf.start_upload(files, damaged), minutes * 60.0)
                shelf.finish(files)
            log.info("the next night finds the model in %s", place_of(Settings()))
        for commit in shelf.sweep(datetime.now(UTC)):
            log.info("removed commit %s of the model from the bucket", commit)
    except NightbenchError as error:
        log.warning("the model is not kept in the bucket: %s", error)


@task(task_run_name="upload the model", cache_policy=NO_CACHE, persist_result=False)
def upload_model(lease: Lease, model: PreparedModel, pieces: tuple[Part, ...], seconds: float) -> None:
    """Have the machine upload these pieces; ObjectStoreError where it did not get to the end of it."""
    log = get_run_logger()
    log.info("uploading %.2f GB of the model, for %.0f s at most", sum(one.size for one in pieces) / 1e9, seconds)
    sent = machine_of(lease).run(operations.keep_model, make_reporter(), model, pieces, seconds, lease.lease_id)
    if sent.why is not None:
        raise ObjectStoreError(f"{sent.why}; what is there is gone on with the next night")
