"""Calibrate the load client before a night's server comes up."""

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.record import Calibration, NightRecord
from infra.night_calibration import calibrate_night
from infra.settings import Settings


@task(task_run_name="calibrate", cache_policy=NO_CACHE, persist_result=False)
def calibrate_client(night: NightRecord) -> Calibration:
    """Measure the load client's own error on this host; where it cannot be, the night goes on without."""
    settings = Settings()
    found = calibrate_night(settings.data.absolute(), night, settings.cache, get_run_logger().info)
    if found.calibration_id is None:
        get_run_logger().warning("no run of this night can be accepted, its client is not calibrated: %s", found.reason)
    return found
