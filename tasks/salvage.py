"""Bring a night's run folders to the bucket that the settings name, and back; nothing where they name none."""

from functools import partial

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import UsageError
from bench.record import NightRecord
from infra.reporting import Say
from infra.settings import Settings
from infra.storage import store
from infra.storage.object_store import BucketLocation, ObjectStore
from infra.storage.upload import fetch_night, missing, read_uploads, salvage


def place_of(settings: Settings) -> BucketLocation | None:
    """Where run folders go besides this computer; None where the settings name no bucket."""
    if not settings.s3_bucket:
        return None
    return BucketLocation(settings.s3_bucket, settings.s3_endpoint, settings.s3_prefix)


def upload_runs(night: str, *, is_paid_for: bool) -> None:
    """Upload what of a night is not there yet, within the grace that a paid machine allows or else with patience.

    A bucket that failed once is not asked again before the machine is given back.
    """
    settings = Settings()
    has_failed = read_uploads(settings.data, night).reason is not None
    if place_of(settings) is not None and not (is_paid_for and has_failed):
        upload(night, settings.s3_grace_s if is_paid_for else settings.s3_patience_s)


@task(task_run_name="upload {night}", cache_policy=NO_CACHE, persist_result=False)
def upload(night: str, grace_s: float) -> None:
    """Upload what is missing; a bucket that fails is a warning, the folders are here."""
    for warning in upload_night(Settings(), night, grace_s):
        get_run_logger().warning("%s", warning)


def upload_night(settings: Settings, night: str, grace_s: float) -> list[str]:
    """Upload what of a night is not there yet; what failed, as sentences."""
    place = require_place(settings)
    return salvage(partial(ObjectStore, place), place, settings.data, night, grace_s)


def not_uploaded(settings: Settings, night: str) -> list[str]:
    """The runs of a night that are here and not in the bucket; none where there is no bucket."""
    place = place_of(settings)
    return [] if place is None else missing(settings.data, night, place)


def nights_there(settings: Settings) -> list[str]:
    """Every night that the bucket has."""
    return ObjectStore(require_place(settings)).folders("runs")


def fetch(settings: Settings, night: str) -> int:
    """Bring a night back from the bucket; how many runs came."""
    return fetch_night(ObjectStore(require_place(settings)), settings.data, night)


def find_night(settings: Settings, night: str, say: Say) -> NightRecord:
    """The plan of a night, brought here from the bucket where only that has it; UsageError where nobody has."""
    is_here = (store.night_folder(settings.data, night) / "night.json").exists()
    if not is_here and place_of(settings) is not None:
        say(f"fetched {fetch(settings, night)} runs of night {night} from the bucket")
    return store.read_night(settings.data, night)


def require_place(settings: Settings) -> BucketLocation:
    """Where run folders go besides this computer; UsageError where the settings name no bucket."""
    place = place_of(settings)
    if place is None:
        raise UsageError(
            "no bucket is set: NIGHTBENCH_S3_BUCKET, and NIGHTBENCH_S3_ENDPOINT for one that is not Amazon's"
        )
    return place
