"""Copies nights to the bucket that the settings name, and back."""

import logging
from functools import partial

from bench.errors import UsageError
from bench.record import NightRecord
from infra.processes.file_lock import exclusive_lock
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store
from infra.storage.fetch import Fetched, fetch_night
from infra.storage.object_store import ObjectStore
from infra.storage.upload import missing, upload_runs
from nights.bucket import BucketLocation
from nights.durable import make_folder

LOG = logging.getLogger("nightbench")


def bucket_location(settings: Settings) -> BucketLocation | None:
    """The bucket of the settings; None if they name none."""
    if not settings.s3_bucket:
        return None
    return BucketLocation(settings.s3_bucket, settings.s3_endpoint, settings.s3_prefix)


def upload_night(settings: Settings, night: str, grace_s: float) -> list[str]:
    """Upload the runs of a night that the bucket lacks, within `grace_s` seconds; return a sentence per failure."""
    location = require_bucket_location(settings)
    return upload_runs(partial(ObjectStore, location), location, settings.data, night, grace_s)


def runs_not_uploaded(settings: Settings, night: str) -> list[str]:
    """The runs of a night that are here and not in the bucket; none if the settings name no bucket."""
    location = bucket_location(settings)
    return [] if location is None else missing(settings.data, night, location)


def nights_in_bucket(settings: Settings) -> list[str]:
    """Every night in the bucket."""
    return ObjectStore(require_bucket_location(settings)).folders("runs")


def fetch(settings: Settings, night: str) -> Fetched:
    """Download what is missing here of a night or changed in the bucket; return what that was.

    Two at once follow each other. Leases of several computers may each have changed the plan for their own machine.
    """
    bucket, runs = ObjectStore(require_bucket_location(settings)), settings.data / "runs"
    make_folder(runs)
    with exclusive_lock(runs / ".fetch.lock", LOG.info, "fetching a night"):
        fetched = fetch_night(bucket, settings.data, night)
        store.merge_lease_plans(settings.data, night)
    return fetched


def find_night(settings: Settings, night: str, say: Say) -> NightRecord:
    """The plan of a night, downloaded from the bucket if it is not here; UsageError if the bucket lacks it too."""
    is_here = (store.night_folder(settings.data, night) / "night.json").exists()
    if not is_here and bucket_location(settings) is not None:
        say(f"fetched {len(fetch(settings, night).runs)} runs of night {night} from the bucket")
    return store.read_night(settings.data, night)


def require_bucket_location(settings: Settings) -> BucketLocation:
    """The bucket of the settings; UsageError if they name none."""
    location = bucket_location(settings)
    if location is None:
        raise UsageError("no bucket is set: set NIGHTBENCH_S3_BUCKET, and NIGHTBENCH_S3_ENDPOINT if it is not on AWS")
    return location
