"""Looks for a suite's model in the bucket that caches models between nights.

The cache saves a download and nothing else. Settings that cannot work are refused before anything is rented; later, an
error of the bucket never ends a night.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from bench.errors import NightbenchError, ObjectStoreError, UsageError
from bench.record import NightRecord
from bench.suite.model import Model
from bench.suite.scenario import Scenario
from bench.suite.suite import ScenarioEntry, Suite
from infra.models.bucket_cache import BucketCache
from infra.models.models import PreparedModel
from infra.models.parts import CachedModel, FetchResult
from infra.reporting import Say
from infra.settings import Settings
from infra.storage.bucket import bucket_location, require_bucket_location
from infra.storage.object_store import ObjectStore
from nights.bucket import RequestLimits

Asking = TypeVar("Asking", Suite, ScenarioEntry, Scenario)
QUICK = RequestLimits(connect_s=3.0, read_s=10.0, tries=2)  # a machine may be rented meanwhile


@dataclass(frozen=True)
class BucketLookup:
    """A model as the bucket has it, with presigned URLs, or why it comes from the hub; neither without a bucket."""

    model: CachedModel | None = None
    why_not: str | None = None

    def explain(self, model: PreparedModel) -> PreparedModel:
        """Add to a model that came from the hub why it did not come from the bucket."""
        is_from_hub = model.fetched is not None and not model.fetched.given
        return replace(model, fetched=FetchResult(why=self.why_not)) if self.why_not and is_from_hub else model


def without_unset_bucket(settings: Settings, night: NightRecord) -> NightRecord:
    """The night, whose models are not cached in an optional bucket where the settings name none."""
    if bucket_location(settings) is not None:
        return night
    entries = tuple(_without_optional_bucket(entry) for entry in night.suite.scenarios)
    suite = _without_optional_bucket(night.suite).model_copy(update={"scenarios": entries})
    runs = tuple(run.model_copy(update={"scenario": _without_optional_bucket(run.scenario)}) for run in night.runs)
    return night.model_copy(update={"suite": suite, "runs": runs})


def _without_optional_bucket(asking: Asking) -> Asking:
    model = asking.model
    return asking if model is None else asking.model_copy(update={"model": model.without_optional_bucket()})


def require_bucket(settings: Settings, model: Model) -> None:
    """Raise UsageError if the suite caches its model in a bucket that is not set, missing, or rejects the keys.

    A bucket that does not respond now raises nothing: the model then comes from the hub.
    """
    if model.cache_bucket_minutes is None:
        return
    try:
        bucket_cache(settings, model).find()
    except UsageError as error:
        raise UsageError(f"the suite caches its model in a bucket (model.cache_bucket_minutes), but {error}") from error
    except ObjectStoreError as error:
        if error.is_refusal:
            raise UsageError(f"the suite caches its model in a bucket (model.cache_bucket_minutes): {error}") from error


def look_in_bucket(settings: Settings, model: Model, say: Say) -> BucketLookup:
    """Look for the model in the bucket, if the suite caches it there."""
    if model.cache_bucket_minutes is None:
        return BucketLookup()
    try:
        cached = bucket_cache(settings, model).find()
    except NightbenchError as error:
        lookup = BucketLookup(why_not=str(error))
    else:
        lookup = BucketLookup(cached, None if cached else f"{bucket_location(settings)} does not have the model yet")
    if lookup.why_not:
        say(f"the model comes from the hub: {lookup.why_not}")
    return lookup


def bucket_cache(settings: Settings, model: Model) -> BucketCache:
    """The place of a model in the bucket of the settings; UsageError if they name none."""
    return BucketCache(ObjectStore(require_bucket_location(settings), QUICK), model.source)
