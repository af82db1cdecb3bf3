"""Run a suite's control once on a lease: its engine and its model, one server, one load."""

from dataclasses import replace

from prefect import get_run_logger

from bench.errors import NightbenchError
from bench.record import NightRecord, PlannedRun
from infra.agent import operations
from infra.agent.operations import MachinePaths, PrepareOptions
from infra.bootstrap import executor_of
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.ledger.lease import Lease
from infra.measurement.run import RunContext
from infra.reporting import Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.task import night_task


def control_run(settings: Settings, night: NightRecord) -> PlannedRun | None:
    """The control's run on one more lease of a night; None where the suite has no control."""
    scenario = night.suite.control_scenario()
    if scenario is None:
        return None
    run = PlannedRun(order=0, repeat=0, scenario=scenario)
    while store.run_folder(settings.data, night.night, run).exists():
        run = run.model_copy(update={"repeat": run.repeat + 1})
    return run


@night_task("engine and model of the control")
def prepare_control(
    settings: Settings, lease: Lease, paths: MachinePaths, context: RunContext, run: PlannedRun
) -> tuple[RunContext, EngineAt]:
    """Install the control's engine and fetch its model, or find both there; the context is that of its run."""
    scenario = run.scenario
    options = PrepareOptions(lease.lease_id, lease.is_free_to_change, paths.scratch)
    prepared = executor_of(settings, lease).run(
        operations.prepare, Reporter(get_run_logger().info), scenario.engine, scenario.model, options
    )
    return replace(context, model=prepared.model, night=_limited(context.night)), prepared.engine


def after_start(context: RunContext, running: RunningServer | EngineAt | NightbenchError) -> RunContext:
    """The context of the control's load: the start of its server took some of the control's time."""
    spent_s = (running.cold_start_s or 0.0) if isinstance(running, RunningServer) else 0.0
    return replace(context, night=_limited(context.night, spent_s))


def _limited(night: NightRecord, spent_s: float = 0.0) -> NightRecord:
    """The night with the control's time limit in place of its own."""
    if night.suite.control is None:
        return night
    left_s = max(1.0, night.suite.control.timeout_s - spent_s)
    limits = {"ready_timeout_s": left_s, "run_timeout_s": left_s}
    return night.model_copy(update={"suite": night.suite.model_copy(update=limits)})
