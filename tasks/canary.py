"""Measure a leased machine itself, before its first server starts and after its last has stopped."""

import logging
from dataclasses import replace
from datetime import UTC, datetime

from prefect import get_run_logger

from bench.errors import MachineUnfitError, NightbenchError
from bench.machine.canary import CanaryRecord, with_verdict
from bench.machine.canary_history import floors_from
from bench.record import NightRecord
from catalog.read import find_gpu, read_canary_floors
from infra.agent import operations
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.bootstrap import executor_of
from infra.engines.canary import CanaryRequest
from infra.ledger.lease import Lease
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.task import night_task
from warehouse.lake.canary_history import read_earlier_canaries


def canary_request(lease: Lease, paths: MachinePaths, prepared: Prepared) -> CanaryRequest:
    """The canary of a lease, on the prepared machine; the paths are on that machine."""
    gpu_count = len(paths.host.gpus)  # a machine that never had one cannot lose it
    return CanaryRequest(prepared.engine, prepared.model.path, paths.machine, lease.lease_id, "before", gpu_count)


@night_task("canary before the first server")
def canary_before(settings: Settings, night: NightRecord, lease: Lease, request: CanaryRequest) -> None:
    """Measure the machine before a server takes its memory; MachineUnfitError if it is below its floor."""
    record = _measure(settings, night, lease, request)
    if record.unfit is not None:
        raise MachineUnfitError(f"machine {lease.machine_id or lease.lease_id} is unfit: {record.unfit}")


@night_task("canary after the last server")
def canary_after(settings: Settings, night: NightRecord, lease: Lease, request: CanaryRequest) -> None:
    """Measure the machine again; every run is measured by now, so a failure is recorded and ends nothing."""
    started_at = datetime.now(UTC)
    try:
        _measure(settings, night, lease, replace(request, position="after"))
    except NightbenchError as error:
        get_run_logger().warning("the canary after the last server was not run: %s", error)
        _store(settings, night, CanaryRecord.not_run(request.lease_id, "after", started_at, str(error)))


def _measure(settings: Settings, night: NightRecord, lease: Lease, request: CanaryRequest) -> CanaryRecord:
    log = get_run_logger()
    measured = executor_of(settings, lease).run(operations.run_canary, Reporter(log.info), request)
    constants = read_canary_floors()
    if measured.gpus:
        earlier = read_earlier_canaries(settings.data.absolute(), night.night, lease.cloud, lease.kind)
        measured = measured.model_copy(update={"floors": floors_from(earlier, constants)})
    record = with_verdict(measured, find_gpu, constants)
    _store(settings, night, record)
    if record.reason is not None:
        level = logging.WARNING if request.engine.module.HAS_PYTHON else logging.INFO
        log.log(level, "the canary did not run to its end: %s", record.reason)
    return record


def _store(settings: Settings, night: NightRecord, record: CanaryRecord) -> None:
    path = store.canary_file(settings.data, night.night, record.lease_id, record.position)
    store.write_json(path, record)
