"""Upload a night's run folders to the bucket that the settings name."""

from prefect import get_run_logger

from infra.settings import Settings
from infra.storage.bucket import bucket_location, upload_night
from infra.storage.upload import read_uploads
from tasks.task import night_task


def upload_runs(settings: Settings, night: str, *, is_machine_rented: bool) -> None:
    """Upload the runs of a night that the bucket lacks; a rented machine shortens the time limit.

    While a machine is rented, a bucket that failed once is not tried again.
    """
    has_failed = read_uploads(settings.data, night).reason is not None
    if bucket_location(settings) is not None and not (is_machine_rented and has_failed):
        upload(night, settings.s3_grace_s if is_machine_rented else settings.s3_patience_s)


@night_task("upload {night}")
def upload(settings: Settings, night: str, grace_s: float) -> None:
    """Upload what the bucket lacks; a bucket that fails is a warning, because the run folders are here."""
    for warning in upload_night(settings, night, grace_s):
        get_run_logger().warning("%s", warning)
