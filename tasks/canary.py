"""Measure a leased machine itself, before its first server starts and after its last has stopped."""

from datetime import UTC, datetime

from prefect import get_run_logger

from bench.errors import MachineUnfitError, NightbenchError
from bench.machine.canary import CanaryRecord, Position, with_verdict
from catalog.read import find_gpu, read_canary_floors
from infra.agent import operations
from infra.bootstrap import executor_for
from infra.engines.canary import CanaryRequest
from infra.engines.server import EngineAt
from infra.measurement.run import RunContext
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.task import night_task


@night_task("canary before the first server")
def canary_before(settings: Settings, context: RunContext, engine: EngineAt) -> None:
    """Measure the machine before a server takes its memory; MachineUnfitError if it is below its floor."""
    record = _measure(settings, context, engine, "before")
    if record.unfit is not None:
        raise MachineUnfitError(f"machine {context.lease.machine_id} is unfit: {record.unfit}")


@night_task("canary after the last server")
def canary_after(settings: Settings, context: RunContext, engine: EngineAt) -> None:
    """Measure the machine again; every run is measured by now, so a failure is recorded and ends nothing."""
    started_at = datetime.now(UTC)
    try:
        _measure(settings, context, engine, "after")
    except NightbenchError as error:
        get_run_logger().warning("the canary after the last server was not run: %s", error)
        _store(settings, context, CanaryRecord.not_run(context.lease.lease_id, "after", started_at, str(error)))


def _measure(settings: Settings, context: RunContext, engine: EngineAt, position: Position) -> CanaryRecord:
    log = get_run_logger()
    request = CanaryRequest(
        engine=engine,
        model=context.model.path,
        machine=context.machine,
        lease_id=context.lease.lease_id,
        position=position,
        gpu_count=context.night.suite.machine.least_gpu_count,
    )
    measured = executor_for(settings, context).run(operations.run_canary, Reporter(log.info), request)
    record = with_verdict(measured, find_gpu, read_canary_floors())
    _store(settings, context, record)
    if record.reason is not None:
        log.warning("the canary did not run to its end: %s", record.reason)
    return record


def _store(settings: Settings, context: RunContext, record: CanaryRecord) -> None:
    path = store.canary_file(settings.data, context.night.night, record.lease_id, record.position)
    store.write_json(path, record)
