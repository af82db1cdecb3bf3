"""The night: plan, rent a machine, calibrate, measure every scenario on it, give it back, load, judge, report."""

from pathlib import Path
from uuid import UUID

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow

from bench.cost.estimate import LM_EVAL
from bench.errors import BudgetError, HostError, MachineUnfitError, NightbenchError
from bench.record import NightRecord, PlannedRun
from flows.dead_runs import provably_alive
from infra.agent.operations import MachinePaths
from infra.agent.prepare import Prepared
from infra.clouds.volume_cloud import Volume
from infra.engines.server import EngineAt, RunningServer
from infra.ledger.ledger import Lease
from infra.measurement.run import RunContext
from infra.settings import Settings
from tasks.artifacts import NightProgress, show_plan, show_results, start_progress
from tasks.calibrating import calibrate_client
from tasks.golden import find_golden
from tasks.leases import alive, give_back_leftovers
from tasks.loading import keep_end, load, report
from tasks.machine import as_rented, can_be_replaced, prepare_machine, provision, reach, teardown
from tasks.measuring import ask_tasks, bring_up, has_tasks, is_serving, make_context, measure, shut_down
from tasks.model_cache import fill_bucket
from tasks.planning import missing_runs, plan_night
from tasks.salvage import upload_runs
from tasks.spending import spending
from tasks.volumes import attach_volume
from warehouse.load import LoadSummary

MACHINES_MAX = 3  # that one night may rent, one after another


def release_leftovers(flow: Flow[..., object], flow_run: FlowRun, state: State[object]) -> None:
    """Give back what a dead night left behind; Prefect passes the three by these names."""
    del flow, flow_run, state
    give_back_leftovers(Settings())


@flow(
    name="nightly",
    flow_run_name="nightly {suite} on {target}",
    on_cancellation=[release_leftovers],
    on_crashed=[release_leftovers],
    on_failure=[release_leftovers],
)
def nightly(
    suite: str = "suites/local.toml", target: str = "local", poc: bool = False, resume: str | None = None
) -> LoadSummary:
    """Run a whole night and return what was loaded; what could be measured is loaded even if the machine failed.

    Prefect's form for a custom run shows these words, and reads them from nowhere else.

    Args:
        suite: The suite file that says what to measure
        target: Where to measure it: local, digitalocean, or ssh:user@host for a host of your own
        poc: Only the first scenario, once
        resume: A night to take up again: runs only what it is missing

    """
    night = plan_night(Path(suite), target, poc=poc, resume=resume)
    with provably_alive():
        return run_night(night)


def run_night(night: NightRecord) -> LoadSummary:
    """Measure, load, judge and report what the night is missing; raise what ended it early once that is done."""
    show_plan(night)
    missing = len(missing_runs(night))
    progress = start_progress(night, missing)
    failure = try_machines(night, progress) if missing else None  # a whole night rents nothing
    upload_runs(night.night, is_paid_for=False)
    summary = load(night.night)
    show_results(night.night, report(night.night))
    if failure is not None:
        raise failure
    return summary


def try_machines(night: NightRecord, progress: UUID) -> BaseException | None:
    """Measure what the night is missing; return what ended it early, having written that down.

    A rented machine that vanished, or was never fit, is followed by another, which measures only what is missing.
    """
    for _ in range(MACHINES_MAX):
        outcome = benchmark_machine(night, progress, return_state=True).result(raise_on_failure=False)
        if not (isinstance(outcome, (HostError, MachineUnfitError)) and can_be_replaced(night)):
            break
    if not isinstance(outcome, BaseException):
        return None
    keep_end(night.night, outcome)
    return outcome


@flow(name="benchmark-machine", flow_run_name="machine for {night.night}", validate_parameters=False)
def benchmark_machine(night: NightRecord, progress: UUID) -> None:
    """Rent one machine, measure every missing run on it, and always give it back."""
    golden = find_golden(night)
    lease = provision(night, golden)
    volume = None
    try:
        with alive(lease):
            night = as_rented(night, lease)
            with spending(night, lease.lease_id, "boot"):
                site = reach(lease, night.suite.machine)
                volume = attach_volume(night, lease)
            prepared = prepare_in_parallel(night, lease, site, volume)
            fill_bucket(night, lease, prepared.model)
            with spending(night, lease.lease_id, "calibrate"):
                calibration = calibrate_client(night, lease)
            context = make_context(night, lease, site, prepared.model, calibration, golden)
            measure_runs(context, prepared.engine, progress)
    finally:
        teardown(lease, volume)


def prepare_in_parallel(night: NightRecord, lease: Lease, site: MachinePaths, volume: Volume | None) -> Prepared:
    """Put engine and model on the machine at the same time; each is a stage with a cost of its own."""
    with (
        spending(night, lease.lease_id, "software") as software,
        spending(night, lease.lease_id, "model") as model,
    ):
        prepared = prepare_machine(lease, site, night.suite, volume)
        software.lasted(prepared.stage_s["engine"])
        model.lasted(prepared.stage_s["model"])
    return prepared


def measure_runs(context: RunContext, engine: EngineAt, artifact: UUID) -> None:
    """Measure every missing run of the night in its order, each on a living server that fits it.

    A server that will not start fails every run that needs it; one that dies under a run is started again for the next.
    """
    runs = missing_runs(context.night)
    progress = NightProgress(context.night, done=len(context.night.runs) - len(runs), artifact=artifact)
    running: RunningServer | NightbenchError | None = None
    server_id = None
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        fits = run.scenario.server_id == server_id
        if isinstance(running, RunningServer) and not (fits and is_serving(context, running)):
            shut_down(context, running)
            running = None
        if running is None or not fits:
            with spending(context.night, context.lease.lease_id, "serve"):
                running, server_id = try_server(context, run, engine), run.scenario.server_id
        with spending(context.night, context.lease.lease_id, "measure", run):
            is_last = following is None or following.scenario.server_id != server_id
            measure(context, run, running, is_last, progress.within_run)
        upload_runs(context.night.night, is_paid_for=True)
        progress.run_is_over()
    if isinstance(running, RunningServer):
        ask_its_tasks(context, runs[-1], running)
        shut_down(context, running)


def ask_its_tasks(context: RunContext, run: PlannedRun, running: RunningServer) -> None:
    """Ask what only shows in the answers, of the very process that was measured and after all of it was."""
    if not has_tasks(context, run):
        return
    try:
        with spending(context.night, context.lease.lease_id, LM_EVAL):
            ask_tasks(context, run, running)
    except BudgetError as error:  # everything is measured: the night does not end for this
        get_run_logger().warning("lm-eval was not run: %s", error)
    upload_runs(context.night.night, is_paid_for=True)


def try_server(context: RunContext, run: PlannedRun, engine: EngineAt) -> RunningServer | NightbenchError:
    """The server for a run, or the error that kept it from coming up; anything we do not understand is raised."""
    state = bring_up(context, run, engine, return_state=True)
    outcome = state.result(raise_on_failure=False)
    if isinstance(outcome, (RunningServer, NightbenchError)):
        return outcome
    raise outcome
