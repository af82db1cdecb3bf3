"""The model of a suite on its machine: fetched, deleted, and kept in the bucket that caches models between nights."""

from datetime import UTC, datetime

from prefect import get_run_logger

from bench.errors import NightbenchError, ObjectStoreError
from bench.record import NightRecord
from bench.suite.scenario import Scenario
from infra.agent import operations
from infra.agent.operations import MachinePaths, PrepareOptions
from infra.bootstrap import executor_of, ledger_file
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.models.bucket_lookup import bucket_cache, look_in_bucket
from infra.models.models import PreparedModel
from infra.models.parts import Part
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage.bucket import bucket_location
from tasks.task import night_task

STAGE = "cache"


def fill_bucket(settings: Settings, night: NightRecord, lease: Lease, model: PreparedModel) -> None:
    """Have the machine upload what the bucket lacks of its model, within the suite's time limit; a stage of its own.

    This runs before the calibration, because an upload would disturb a measurement. An error is logged and does not end
    the night.
    """
    minutes, log = night.suite.model.cache_bucket_minutes, get_run_logger()
    if not minutes:
        return
    try:
        cache = bucket_cache(settings, night.suite.model)
        files = executor_of(settings, lease).run(operations.list_model, Reporter(log.info), model)
        damaged = model.fetched.damaged if model.fetched else ()
        if damaged or not cache.has(files):
            max_s = minutes * 60.0
            with record_stage(ledger_file(settings), night, lease.lease_id, STAGE, max_s=max_s):
                upload_model(lease, model, cache.start_upload(files, damaged), max_s)
                cache.finish(files)
            log.info("the model is cached in %s for the next night", bucket_location(settings))
        for commit in cache.sweep(datetime.now(UTC)):
            log.info("deleted commit %s of the model from the bucket", commit)
    except NightbenchError as error:
        log.warning("the model is not cached in the bucket: %s", error)


@night_task("upload the model")
def upload_model(settings: Settings, lease: Lease, model: PreparedModel, parts: tuple[Part, ...], max_s: float) -> None:
    """Have the machine upload these parts of its model; ObjectStoreError if the upload does not finish."""
    log = get_run_logger()
    log.info("uploading %.2f GB of the model, for %.0f s at most", sum(one.size for one in parts) / 1e9, max_s)
    executor = executor_of(settings, lease)
    sent = executor.run(operations.keep_model, Reporter(log.info), model, parts, max_s, lease.lease_id)
    if sent.why is not None:
        raise ObjectStoreError(f"{sent.why}; the next night uploads the rest")


@night_task("model {scenario.model.source}")
def fetch_model(settings: Settings, lease: Lease, paths: MachinePaths, scenario: Scenario) -> PreparedModel:
    """Download a model to the machine's own disk, or find it there; its engine is found, or installed beside it."""
    log = get_run_logger()
    lookup = look_in_bucket(settings, scenario.model, log.info)
    options = PrepareOptions(lease.lease_id, lease.is_free_to_change, paths.scratch, cached=lookup.model)
    executor = executor_of(settings, lease)
    prepared = executor.run(operations.prepare, Reporter(log.info), scenario.engine, scenario.model, options)
    return lookup.explain(prepared.model)


@night_task("delete the model {model.name}")
def delete_model(settings: Settings, lease: Lease, model: PreparedModel) -> None:
    """Delete a model from the disk of a rented machine, where another one needs its room."""
    executor_of(settings, lease).run(operations.delete_model, Reporter(get_run_logger().info), model)
