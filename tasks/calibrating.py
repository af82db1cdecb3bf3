"""Calibrate the load client before a night's server starts."""

from prefect import get_run_logger

from bench.record import Calibration, NightRecord
from infra.agent import operations
from infra.bootstrap import executor_of
from infra.ledger.ledger import Lease
from infra.reporting import Reporter
from infra.settings import Settings
from tasks.task import night_task


@night_task("calibrate")
def calibrate_client(settings: Settings, night: NightRecord, lease: Lease) -> Calibration:
    """Measure the load client's own error on the machine; if that fails, the night goes on without."""
    log = get_run_logger()
    found = executor_of(settings, lease).run(operations.calibrate, Reporter(log.info), night)
    if found.calibration_id is None:
        log.warning("the load client is not calibrated, so no run that it drives can be accepted: %s", found.reason)
    return found
