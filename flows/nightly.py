"""The night: plan, rent a machine, calibrate, measure every scenario, release the machine, load, judge, report.

Each flow and hook reads the settings at its entry and hands them to what it calls; a task reads its own, in
tasks/task.py. They are never a parameter of a flow or task: Prefect may record parameters, and settings hold secrets.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

from prefect import flow, get_run_logger

from bench.cost.estimate import CANARY, CONTROL
from bench.errors import BudgetError, EngineBuildError, ModelError, NoSpaceError
from bench.night_steps import server_steps
from bench.record import NightRecord, PlannedRun
from flows.added_repeats import with_added_repeat, with_due_repeats
from flows.causes import search_causes
from flows.defaults import DEFAULT, choose, run_name
from flows.deployed import is_deployed, require_listed, why_skipped
from flows.end_state import as_state, ended, skipped
from flows.ending import end_prefects_thread_at_exit
from flows.form import MachineName, NightName, SuiteName, TargetName
from flows.lost_server import run_to_its_end
from flows.machines import run_machines
from flows.models import MachineModels
from flows.night_hooks import load_cancelled, release_after_error, release_all, release_leftovers, tag_with_night
from flows.night_request import NightRequest
from flows.nodes import measure_on_nodes, prepare_with_others, rent_others, with_nodes
from flows.notifying import notify_of_night
from flows.rental import release_at_end
from flows.serving import leave_server, profile_scenarios, require_fit, start_server, with_failed_starts
from flows.spread.elsewhere import is_spread, require_means, run_elsewhere
from flows.suspects import measure_suspects
from infra.agent.operations import MachinePaths
from infra.bootstrap import ledger_file
from infra.engines.canary import CanaryRequest
from infra.engines.endpoint import NOT_OURS
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.leases.stage_budget import record_stage
from infra.ledger.lease import Lease
from infra.loadgen.suite_file import refuse_forced_resume
from infra.measurement.run import RunContext, Started
from infra.reporting import no_progress
from infra.settings import Settings
from infra.storage import store
from tasks.artifacts import NightProgress, show_plan, show_results, start_progress
from tasks.canary import canary_after, canary_before, canary_request
from tasks.control import after_start, control_run, prepare_control
from tasks.crashed_night import log_what_is_left
from tasks.golden import find_golden
from tasks.kept_progress import keep_progress
from tasks.loading import judge, load, report, report_suite, site
from tasks.machine import as_rented, provision, reach
from tasks.measuring import calibrate_client, is_serving, lineage_of, make_context, measure, shut_down
from tasks.models import fill_bucket
from tasks.planning import hold_machine, plan_night, runs_elsewhere
from tasks.task import night_task
from tasks.upload import upload_runs
from tasks.volumes import attach_volume
from warehouse.load import LoadSummary


@flow(
    name="nightly",
    flow_run_name=run_name,
    retries=0,  # whatever Prefect's default is set to: a second night would hide the first one, and cost as much
    on_cancellation=[release_leftovers, load_cancelled],
    on_crashed=[release_leftovers, log_what_is_left],
    on_failure=[release_after_error],
)
def nightly(  # noqa: PLR0913, PLR0917 - a parameter for each field of Prefect's form
    suite: SuiteName = DEFAULT,
    target: TargetName = DEFAULT,
    poc: bool = False,
    resume: NightName = None,
    wait: bool = False,
    force: bool = False,
    apply_rules: bool = False,
    machine: MachineName = None,
) -> LoadSummary:
    """Run a whole night and return what was loaded; runs that were measured are loaded even if the machine failed.

    The state of a night says what became of it. Prefect's form for a custom run shows this text.

    Args:
        suite: Suite file that defines what to measure; default: suites/nightly.toml if a cloud token is set, otherwise
            suites/local.toml
        target: Where to measure: local, digitalocean, ssh:user@host for a host of your own, or the URL of a server that
            already runs, http(s)://host:port; default: where the default suite runs, and for another suite local
        poc: Run only the first scenario, once
        resume: Night to resume: only its missing runs are run
        wait: Wait while another night measures on this machine; otherwise this night fails at once
        force: Run a suite that cannot be served on its machine, as far as the catalogue knows; its records say so
        apply_rules: Apply the fixes that the engine's rules name; the scenarios then have other ids
        machine: Measure only this machine of the suite, such as the host of your own that is the target

    """
    refuse_forced_resume(resume, force=force, apply_rules=apply_rules, machine=machine)
    settings = Settings()
    late = why_skipped(settings)
    if late is not None:
        return skipped(late)
    asked = NightRequest(*choose(settings, suite, target), poc, resume, wait, force, apply_rules, machine)
    if is_deployed():
        end_prefects_thread_at_exit()

    release = partial(release_all, settings)

    def to_its_state() -> LoadSummary:
        return as_state(lambda: ended(settings.data, night_with_causes(settings, asked)), release)

    return run_to_its_end(settings.data, to_its_state, release)


def night_with_causes(settings: Settings, asked: NightRequest) -> LoadSummary:
    """Run one night; for each change that it confirms, search the engine that made it, if the suite has a budget."""
    summary = whole_night(settings, asked)
    search_causes(settings, asked, summary.night, partial(run_night, settings, wait=True))
    return summary


def whole_night(settings: Settings, asked: NightRequest) -> LoadSummary:
    """Plan and run one night on a machine that no other night measures on meanwhile, and notify people of its end."""
    suite = Path(asked.suite)
    with notify_of_night(settings, f"{suite} on {asked.target}", get_run_logger().warning) as notice:
        if is_deployed():
            require_listed(settings, suite, asked.target, asked.resume)
            require_means(settings)
        with hold_machine(settings, asked.target, asked.resume, wait=asked.wait) as name_night:
            night = plan_night(suite, asked.target, poc=asked.poc, resume=asked.resume, **asked.options())
            name_night(night)
            tag_with_night(night.night)
            notice.night = night
            return run_night(settings, night, suite, wait=asked.wait)


def run_night(settings: Settings, night: NightRecord, suite: Path, *, wait: bool) -> LoadSummary:
    """Measure, load, judge and report the missing runs of a night; then raise the error that ended it early, if any."""
    with keep_progress(settings, night):
        show_plan(night)
        missing = len(store.missing_runs(settings.data, night))
        progress = start_progress(night, missing)
        # A complete night rents nothing.
        failure = try_machines(settings, night, progress, wait=wait) if missing else None
        upload_runs(settings, night.night, is_machine_rented=False)
        summary = load(night.night)
        suspects = judge(night.night, night.rerun_of)
        show_results(night.night, report(night.night))
        report_suite(night.night, suite)
        if settings.pages_url is not None:
            site()
    upload_runs(settings, night.night, is_machine_rented=False)  # what load, judgement and report wrote
    if failure is not None:
        raise failure
    if suspects:
        measure_suspects(night, suspects, lambda again: run_night(settings, again, suite, wait=wait))
    return summary


def try_machines(settings: Settings, night: NightRecord, progress: UUID, *, wait: bool = False) -> BaseException | None:
    """Run the missing runs of a night on its machines; record and return the error that ended it early, if any."""

    def benchmark(part: NightRecord) -> BaseException | None:
        outcome = benchmark_machine(part, progress, wait, return_state=True).result(raise_on_failure=False)
        return outcome if isinstance(outcome, BaseException) else None

    elsewhere = partial(run_elsewhere, settings, progress=progress)
    return run_machines(settings, night, elsewhere if is_spread(settings, night) else benchmark)


@night_task("machine for {night.night}", shown="machine for {night.night} on {night.target}", is_stage=False)
def benchmark_machine(settings: Settings, night: NightRecord, progress: UUID, wait: bool = False) -> None:
    """Rent one machine, run every missing run of its night on it, and always release it; or several, for commands.

    A task and no flow: the engine of a flow asks Prefect's server at its end, while the machine may still bill.
    """
    golden = find_golden(night)
    with release_at_end(settings, night.night, night.suite.machine.name) as rental:
        rental.lease = lease = provision(night, golden, wait=wait)
        others = rent_others(night, lease, golden)
        if night.where.url is not None:
            measure_endpoint(settings, night, lease, progress)
            return
        night = as_rented(settings, night, lease)
        with record_stage(ledger_file(settings), night, lease.lease_id, "boot"):
            paths = reach(lease, night.suite.machine)
            rental.volume = attach_volume(night, lease)
        prepared, nodes = prepare_with_others(settings, night, paths, rental, others)
        fill_bucket(settings, night, lease, prepared.model)
        canary = canary_request(lease, paths, prepared)
        with record_stage(ledger_file(settings), night, lease.lease_id, CANARY):
            canary_before(night, lease, canary)
        with record_stage(ledger_file(settings), night, lease.lease_id, "calibrate"):
            calibration = calibrate_client(night, lease)
        lineage = lineage_of(settings, night, lease, golden)
        context = make_context(night, lease, paths, prepared.model, calibration, lineage)
        context = with_nodes(context, lease, others, nodes)
        measure_control(settings, context, lease, paths)
        kept = frozenset({night.suite.model.source} if rental.volume else ())
        models = MachineModels(settings, lease, paths, {night.suite.model.source: prepared.model}, kept)
        measure_runs(settings, context, prepared.engine, models, progress)
        profile_scenarios(settings, context, prepared.engine, models)
        measure_again(settings, night, lease, canary)


def measure_endpoint(settings: Settings, night: NightRecord, lease: Lease, progress: UUID) -> None:
    """Measure every missing run on a server that already runs; of it, nothing is prepared, started or changed."""
    paths = reach(lease, night.where.leased(night.suite.machine))
    with record_stage(ledger_file(settings), night, lease.lease_id, "calibrate"):
        calibration = calibrate_client(night, lease)
    context = make_context(night, lease, paths, None, calibration, lineage_of(settings, night, lease, None))
    models = MachineModels(settings, lease, paths, {night.suite.model.source: None})
    measure_runs(settings, context, NOT_OURS, models, progress)
    profile_scenarios(settings, context, NOT_OURS, models)


def measure_control(settings: Settings, context: RunContext, lease: Lease, paths: MachinePaths) -> None:
    """Run the suite's control on this lease, if it has one; what ends it is logged and ends nothing else."""
    run = control_run(settings, context.night)
    if run is None:
        return
    night, file = context.night, ledger_file(settings)
    try:
        with record_stage(file, night, lease.lease_id, CONTROL):
            ours, engine = prepare_control(lease, paths, context, run)
        running = start_server(settings, ours, run, engine)
        ours = after_start(with_failed_starts(settings, ours), running)
        try:
            with record_stage(file, night, lease.lease_id, CONTROL):
                measure(ours, run, running, True, no_progress)
        finally:  # also where the budget allows no load: the next server needs the memory
            if isinstance(running, RunningServer):
                shut_down(ours, running)
    except (BudgetError, EngineBuildError, ModelError, NoSpaceError) as error:
        get_run_logger().warning("the control was not run on this lease: %s", error)
    upload_runs(settings, context.night.night, is_machine_rented=True)


def measure_runs(
    settings: Settings, context: RunContext, engine: EngineAt, models: MachineModels, artifact: UUID
) -> None:
    """Run every missing run of the machine; where memory ran out, then the same runs on the next rung of the ladder."""
    night = context.night
    elsewhere = runs_elsewhere(settings, night)
    finished = max(0, len(night.runs) - len(store.missing_runs(settings.data, night)))
    while runs := store.missing_runs(settings.data, night):
        progress = NightProgress(finished + len(runs), finished, artifact, elsewhere)
        measure_in_turn(settings, context, engine, models, runs, progress)
        finished += len(runs)


def measure_in_turn(
    settings: Settings,
    context: RunContext,
    engine: EngineAt,
    models: MachineModels,
    runs: Sequence[PlannedRun],
    progress: NightProgress,
) -> None:
    """Measure runs in their order, each on a server with its model and configuration; probes follow their first.

    A server that does not start fails every run that needs it; one that exits during a run is restarted for the next.
    Raises MachineUnfitError where a failure calls for another machine.
    """
    night, lease_id, file = context.night, context.lease.lease_id, ledger_file(settings)
    running: Started | None = None
    ready_for, waiting, last = None, with_due_repeats(settings, context, runs), runs[0]
    while waiting:
        run = waiting.pop(0)
        needed = run.scenario.server_id
        is_up = needed == ready_for and isinstance(running, RunningServer) and is_serving(settings, context, running)
        steps = server_steps(needed, ready_for, is_process=isinstance(running, RunningServer), is_serving=is_up)
        leave_server(settings, context, last, running, steps)
        if running is None or "start" in steps:
            context, ready_for = models.context_for(context, run), needed
            running = models.lacking.get(run.scenario.model.source) or start_server(settings, context, run, engine)
            context = with_failed_starts(settings, context)
        with record_stage(file, night, lease_id, "measure", run):
            is_last = not waiting or waiting[0].scenario.server_id != ready_for
            record = measure_on_nodes(settings, context, run, running, is_last, progress.within_run)
        upload_runs(settings, night.night, is_machine_rented=True)
        waiting, last = store.still_missing(settings.data, night, run, waiting), run
        waiting = with_added_repeat(settings, context, run, waiting)
        progress.run_is_over(len(waiting))
        require_fit(settings, context, record)
    steps = server_steps(None, ready_for, is_process=isinstance(running, RunningServer), is_serving=False)
    leave_server(settings, context, last, running, steps)


def measure_again(settings: Settings, night: NightRecord, lease: Lease, canary: CanaryRequest) -> None:
    """Run the canary after the last server, if the budget allows it."""
    try:
        with record_stage(ledger_file(settings), night, lease.lease_id, CANARY):
            canary_after(night, lease, canary)
    except BudgetError as error:  # every run is measured, so the night goes on
        get_run_logger().warning("the canary was not run after the last server: %s", error)
