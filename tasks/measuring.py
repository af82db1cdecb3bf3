"""Bring a server up, measure runs on it, and stop it."""

import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from bench.errors import NightbenchError
from bench.plan import describe_load
from bench.record import Calibration, LeaseFacts, Lineage, NightRecord, PlannedRun, RunRecord
from infra.agent import operations
from infra.agent.operations import MachinePaths
from infra.clouds.cloud import Snapshot
from infra.engines.server import EngineAt, RunningServer
from infra.ledger.ledger import Lease
from infra.measurement.run import RunContext
from infra.models.models import PreparedModel
from infra.settings import Settings
from infra.storage import store
from tasks.reaching import machine_under, make_reporter

ROOT = Path(__file__).parent.parent


def make_context(
    night: NightRecord,
    lease: Lease,
    site: MachinePaths,
    model: PreparedModel,
    calibration: Calibration,
    golden: Snapshot | None,
) -> RunContext:
    """Everything that stays the same for the runs on one machine; its paths are the machine's."""
    return RunContext(
        data=site.data,
        night=night,
        machine=site.machine,
        host=site.host,
        model=model,
        calibration=calibration,
        lease=LeaseFacts(
            lease_id=lease.lease_id,
            cloud=lease.cloud,
            machine_id=lease.machine_id or lease.lease_id,
            usd_per_hour=lease.usd_per_hour,
        ),
        lineage=Lineage(
            nightbench_version=version("nightbench"),
            git_commit=Settings().git_commit or _git_commit(),
            suite_sha256=night.suite_sha256,
            snapshot=golden.name if golden is not None and lease.image == golden.snapshot_id else None,
        ),
    )


def _git_commit() -> str | None:
    """The commit this code is at; None where it is not a git checkout."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        asked = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except FileNotFoundError:
        return None
    return asked.stdout.strip() or None


@task(task_run_name="server for {run.scenario.name}", cache_policy=NO_CACHE, persist_result=False)
def bring_up(context: RunContext, run: PlannedRun, engine: EngineAt) -> RunningServer:
    """Start a server for this run's scenario; not retried, a server that will not start is a result."""
    return machine_under(context).run(operations.bring_up, make_reporter(), context, run, engine)


@task(task_run_name="measure {run.scenario.name} #{run.repeat}", cache_policy=NO_CACHE, persist_result=False)
def measure(
    context: RunContext,
    run: PlannedRun,
    running: RunningServer | NightbenchError,
    is_last: bool,
    progress: Callable[[float], None],
) -> RunRecord:
    """Measure one run; never retried, a second try would hide the instability we are here to see.

    `is_last`: no other run of this night follows on the same server.
    """
    record = machine_under(context).run(operations.measure, make_reporter(progress), context, run, running, is_last)
    say = get_run_logger().info if record.outcome == "measured" else get_run_logger().error
    say(
        "%s #%d (%s): %s %s",
        run.scenario.name,
        run.repeat,
        describe_load(run.scenario),
        record.outcome,
        record.reason or "",
    )
    return record


@task(task_run_name="lm-eval on {run.scenario.server_id}", cache_policy=NO_CACHE, persist_result=False)
def ask_tasks(context: RunContext, run: PlannedRun, running: RunningServer) -> None:
    """Ask the server of this run the suite's tasks, once a night; no trouble with it ends a night that is measured."""
    log = get_run_logger()
    try:
        record = machine_under(context).run(operations.ask_tasks, make_reporter(), context, run.scenario, running)
    except NightbenchError as error:
        log.error("lm-eval was not run: %s", error)  # noqa: TRY400 - a sentence for a person; there is nothing to trace
        return
    for task_asked in record.tasks:
        say = log.info if task_asked.outcome == "measured" else log.warning
        say("lm-eval, %s: %s %s", task_asked.task, task_asked.outcome, task_asked.reason or "")


def has_tasks(context: RunContext, run: PlannedRun) -> bool:
    """Whether the server of this run is still to be asked tasks in this night."""
    folder = store.lm_eval_folder(Settings().data, context.night.night, run.scenario.server_id)
    return context.night.suite.quality.lm_eval is not None and not folder.exists()


@task(task_run_name="stop server", cache_policy=NO_CACHE, persist_result=False, retries=2, retry_delay_seconds=1)
def shut_down(context: RunContext, running: RunningServer) -> None:
    """Stop the server's whole process tree; safe to repeat."""
    machine_under(context).run(operations.shut_down, make_reporter(), running)


def is_serving(context: RunContext, running: RunningServer) -> bool:
    """Whether a server still answers."""
    return machine_under(context).run(operations.is_serving, make_reporter(), running)
