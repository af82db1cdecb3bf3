"""Bring a server up, measure runs on it, and stop it."""

import subprocess
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from prefect import get_run_logger

from bench.errors import NightbenchError, RemoteJobCrashedError, unexpected
from bench.night_progress import LoadProgress
from bench.plan import describe_load
from bench.record import Calibration, LeaseFacts, Lineage, NightRecord, PlannedRun, RunRecord
from bench.suite.engine import is_installed_as
from infra.agent import operations
from infra.agent.operations import MachinePaths
from infra.bootstrap import executor_for, executor_of, ledger
from infra.clouds.cloud import Snapshot
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.ledger.lease import Lease
from infra.measurement.run import RunContext, Started
from infra.measurement.run import measure as measure_run
from infra.models.models import PreparedModel
from infra.processes.environment import child_environment
from infra.reporting import Progress, Reporter
from infra.settings import Settings
from infra.storage import store
from tasks.progress import STREAM
from tasks.task import night_task

ROOT = Path(__file__).parent.parent


def make_context(
    night: NightRecord,
    lease: Lease,
    paths: MachinePaths,
    model: PreparedModel | None,
    calibration: Calibration,
    lineage: Lineage,
) -> RunContext:
    """What all runs on one machine share; the paths are on that machine.

    Without a model a server that is not ours has it: the machine is the client's, and its GPUs serve nothing.
    """
    host = paths.host if model is not None else paths.host.model_copy(update=dict.fromkeys(("gpus", "gpu_details"), ()))
    return RunContext(
        data=paths.data,
        night=night,
        machine=paths.machine,
        host=host,
        model=model,
        calibration=calibration,
        lease=LeaseFacts(
            lease_id=lease.lease_id,
            cloud=lease.cloud,
            machine_id=lease.machine_id or lease.lease_id,
            usd_per_hour=lease.usd_per_hour,
        ),
        lineage=lineage,
    )


def lineage_of(settings: Settings, night: NightRecord, lease: Lease, golden: Snapshot | None) -> Lineage:
    """The code, suite and golden image that the runs on one machine come from."""
    return Lineage(
        nightbench_version=version("nightbench"),
        git_commit=settings.git_commit or _git_commit(),
        suite_sha256=night.suite_sha256,
        snapshot=golden.name if golden is not None and lease.image == golden.snapshot_id else None,
    )


def _git_commit() -> str | None:
    """The commit of this code; None if it is not a git checkout."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        environment = child_environment()
        described = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False, env=environment)
    except FileNotFoundError:
        return None
    return described.stdout.strip() or None


@night_task("server for {run.scenario.name}")
def bring_up(
    settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt, ready_timeout_s: float
) -> RunningServer:
    """Start a server for this run's scenario; flows/serving.py decides whether one that fails is started again.

    `engine` is the suite's; where the scenario asks for another engine or image, that is installed first.
    """
    executor, reporter = executor_for(settings, context), Reporter(get_run_logger().info)
    engine = engine_of(settings, context, run, engine)
    return executor.run(operations.bring_up, reporter, context, run, engine, ready_timeout_s)


@night_task("engine for {run.scenario.name}")
def ready_offline_engine(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt) -> EngineAt:
    """The engine of a run that needs no server; `engine` is the suite's."""
    return engine_of(settings, context, run, engine)


def engine_of(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt) -> EngineAt:
    """The engine that a run asks for: the suite's, or another engine, release or image, which is installed."""
    asked, prepared = run.scenario.engine, context.night.suite.engine
    if is_installed_as(asked, prepared) or run.scenario.is_control:
        return engine
    lease = ledger(settings).lease(context.lease.lease_id)
    reporter = Reporter(get_run_logger().info)
    return executor_for(settings, context).run(operations.ready_engine, reporter, asked, lease.is_free_to_change)


@night_task("measure {run.scenario.name} #{run.repeat}")
def measure(
    settings: Settings,
    context: RunContext,
    run: PlannedRun,
    running: Started,
    is_last: bool,
    progress: Progress,
) -> RunRecord:
    """Measure one run; never retried, because a second try would hide instability.

    `is_last`: no other run of this night follows on the same server. Where the machine has an exception that nothing
    expects, the run is a failed run whose record is written here.
    """
    log = get_run_logger()

    def follow(load: LoadProgress) -> None:
        STREAM.report(load=load)
        progress(load)

    executor, reporter = executor_for(settings, context), Reporter(log.info, follow)
    try:
        record = executor.run(operations.measure, reporter, context, run, running, is_last)
    except RemoteJobCrashedError as error:
        here = replace(context, data=settings.data.absolute())
        record = measure_run(here, run, unexpected(error), follow, is_last=is_last)
    say = log.info if record.outcome == "measured" else log.error
    outcome = f"{record.outcome}: {record.reason}" if record.reason else record.outcome
    say("%s #%d (%s): %s", run.scenario.name, run.repeat, describe_load(run.scenario), outcome)
    return record


@night_task("lm-eval on {run.scenario.server_id}")
def run_lm_eval(settings: Settings, context: RunContext, run: PlannedRun, running: RunningServer) -> None:
    """Run the suite's lm-eval tasks against the server of this run; an error is logged and does not end the night."""
    log = get_run_logger()
    try:
        record = executor_for(settings, context).run(
            operations.ask_tasks, Reporter(get_run_logger().info), context, run.scenario, running
        )
    except Exception as error:  # noqa: BLE001 - docs/adr/0047: what was measured stands, and the next server follows
        ours = error if isinstance(error, NightbenchError) else unexpected(error)
        log.error("lm-eval was not run: %s\n%s", ours, ours.trace or "")  # noqa: TRY400 - the trace is in the message
        return
    for task_record in record.tasks:
        say = log.info if task_record.outcome == "measured" else log.warning
        say("lm-eval, %s: %s %s", task_record.task, task_record.outcome, task_record.reason or "")


def has_tasks(settings: Settings, context: RunContext, run: PlannedRun) -> bool:
    """Whether lm-eval tasks are still to be run against the server of this run; one of embeddings cannot run any."""
    if run.scenario.workload.is_embedding:
        return False
    folder = store.lm_eval_folder(settings.data, context.night.night, run.scenario.server_id)
    return context.night.suite.quality.lm_eval is not None and not folder.exists()


@night_task("stop server", shown="stop server of lease {context.lease.lease_id}", retries=2, retry_delay_s=1)
def shut_down(settings: Settings, context: RunContext, running: RunningServer) -> None:
    """Stop the server's whole process tree; safe to repeat."""
    executor_for(settings, context).run(operations.shut_down, Reporter(get_run_logger().info), running)


def is_serving(settings: Settings, context: RunContext, running: RunningServer) -> bool:
    """Whether a server still responds."""
    return executor_for(settings, context).run(operations.is_serving, Reporter(get_run_logger().info), running)


@night_task("calibrate", shown="calibrate the client of lease {lease.lease_id}")
def calibrate_client(settings: Settings, night: NightRecord, lease: Lease) -> Calibration:
    """Measure the load client's own error on the machine; if that fails, the night goes on without."""
    log = get_run_logger()
    found = executor_of(settings, lease).run(operations.calibrate, Reporter(log.info), night)
    if found.calibration_id is None:
        log.warning("the load client is not calibrated, so no run that it drives can be accepted: %s", found.reason)
    return found
