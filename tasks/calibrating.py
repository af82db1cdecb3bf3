"""Calibrate the load client before a night's server comes up."""

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.record import Calibration, NightRecord
from infra.agent import operations
from infra.ledger.ledger import Lease
from tasks.reaching import machine_of, make_reporter


@task(task_run_name="calibrate", cache_policy=NO_CACHE, persist_result=False)
def calibrate_client(night: NightRecord, lease: Lease) -> Calibration:
    """Measure the load client's own error on the machine; where it cannot be, the night goes on without."""
    found = machine_of(lease).run(operations.calibrate, make_reporter(), night)
    if found.calibration_id is None:
        get_run_logger().warning("no run of this night can be accepted, its client is not calibrated: %s", found.reason)
    return found
