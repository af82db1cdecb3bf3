"""Fetch a further model of a night to its machine, and delete one for which there is no room any more."""

from prefect import get_run_logger

from bench.suite.scenario import Scenario
from infra.agent import operations
from infra.agent.operations import MachinePaths, PrepareOptions
from infra.bootstrap import executor_of, is_rented
from infra.ledger.ledger import Lease
from infra.models.bucket_lookup import look_in_bucket
from infra.models.models import PreparedModel
from infra.reporting import Reporter
from infra.settings import Settings
from tasks.task import night_task


@night_task("model {scenario.model.source}")
def fetch_model(settings: Settings, lease: Lease, paths: MachinePaths, scenario: Scenario) -> PreparedModel:
    """Download a model to the machine's own disk, or find it there; its engine is found, or installed beside it."""
    log = get_run_logger()
    lookup = look_in_bucket(settings, scenario.model, log.info)
    options = PrepareOptions(lease.lease_id, is_rented(lease), paths.scratch, cached=lookup.model)
    executor = executor_of(settings, lease)
    prepared = executor.run(operations.prepare, Reporter(log.info), scenario.engine, scenario.model, options)
    return lookup.explain(prepared.model)


@night_task("delete the model {model.name}")
def delete_model(settings: Settings, lease: Lease, model: PreparedModel) -> None:
    """Delete a model from the disk of a rented machine, where another one needs its room."""
    executor_of(settings, lease).run(operations.delete_model, Reporter(get_run_logger().info), model)
