"""Run and end the parts of a command on several machines."""

from dataclasses import replace
from pathlib import Path

from prefect import get_run_logger

from bench.errors import NightbenchError
from bench.record import NightRecord, PlannedRun
from bench.suite.command import NodePlace
from bench.suite.engine import is_installed_as
from infra.agent import operations
from infra.bootstrap import executor_of, ledger
from infra.loadgen.nodes import Node
from infra.reporting import Reporter
from infra.settings import Settings
from tasks.task import night_task


@night_task("node {place.rank} of {run.scenario.name}", is_stage=False)
def join(settings: Settings, night: NightRecord, node: Node, run: PlannedRun, place: NodePlace) -> None:
    """Run one node's part of a command to its end, with the engine that its scenario asks for."""
    lease, reporter = ledger(settings).lease(node.lease_id), Reporter(get_run_logger().info)
    executor, asked = executor_of(settings, lease), run.scenario.engine
    if not is_installed_as(asked, night.suite.engine):
        engine = executor.run(operations.ready_engine, reporter, asked, lease.is_free_to_change)
        node = replace(node, engine=engine)
    executor.run(operations.join_command, reporter, run, node, place)


@night_task("end {run.scenario.name}", is_stage=False)
def end_command(settings: Settings, run: PlannedRun, machines: dict[str, Path], why: str) -> None:
    """End the command of a run on these machines, by their leases; one that cannot be reached ends it by its time."""
    log = get_run_logger()
    for lease_id, machine in machines.items():
        try:
            executor = executor_of(settings, ledger(settings).lease(lease_id), is_second=True)
            executor.run(operations.stop_command, Reporter(log.info), run, machine, why)
        except NightbenchError as error:
            log.warning("the command was not ended on the machine of lease %s: %s", lease_id, error)
