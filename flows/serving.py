"""Start the server of a run, leave it after its last run, give up an unfit machine, and trace at the end."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from prefect import get_run_logger
from prefect.exceptions import PrefectException

from bench.cost.estimate import LM_EVAL, PROFILE
from bench.engines.by_name import retry_of
from bench.errors import BudgetError, MachineUnfitError, NightbenchError, unexpected
from bench.night_steps import ServerStep, after_failed_start, longest_start_s
from bench.record import FailedStart, PlannedRun, RunRecord
from flows.models import MachineModels
from infra.bootstrap import ledger, ledger_file
from infra.engines.engine_at import EngineAt
from infra.engines.server import RunningServer
from infra.leases.stage_budget import has_time, leases_of, left_of_lease_s, record_stage
from infra.measurement.run import RunContext, Started
from infra.settings import Settings
from infra.storage import store
from infra.storage.failed_starts import keep_failed_start, leases_that_failed, read_failed_starts
from tasks.machine import can_be_replaced
from tasks.measuring import bring_up, has_tasks, ready_offline_engine, run_lm_eval, shut_down
from tasks.profiling import profile, runs_to_profile
from tasks.upload import upload_runs
from warehouse.judging.validation import imported_meanwhile


def start_server(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt) -> Started:
    """The server for a run, or the error why it did not start; what Prefect or a signal stops is raised.

    A server is started at most twice on one machine, and only once where the second start may outlast the lease.
    Raises MachineUnfitError where its failure calls for another machine and the night may rent one; the run is then
    still missing. Raises BudgetError before a start too many.
    """
    if run.scenario.workload.is_offline:
        return ready_offline_engine(context, run, engine)
    timeout_s = context.night.suite.ready_timeout_s
    for starts in count(1):
        started = _start(settings, context, run, engine, timeout_s)
        if not isinstance(started, NightbenchError):
            break
        retry = retry_of(run.scenario.engine.name, started.failure)
        longest_s = longest_start_s(retry, timeout_s)
        left_s = left_of_lease_s(ledger_file(settings), context.lease.lease_id)
        may_replace = _may_replace(settings, context)
        step = after_failed_start(retry, starts, again_s=longest_s, left_s=left_s, may_replace=may_replace)
        if step == "no_time":
            return _not_again(started, longest_s, left_s)
        if step == "accept":
            break
        _keep(settings, context, run, started)
        if step == "replace_machine":
            raise _unfit(context, started)
        timeout_s = longest_s
    return started


def leave_server(
    settings: Settings, context: RunContext, last: PlannedRun, running: Started | None, steps: Sequence[ServerStep]
) -> None:
    """Evaluate and stop a server process, as far as the steps name it."""
    if not isinstance(running, RunningServer):
        return
    if "evaluate" in steps:
        _evaluate(settings, context, last, running)
    if "stop" in steps:  # after the last run: judging needs the import, and no load runs while a server stops
        with nullcontext() if "start" in steps else imported_meanwhile():
            shut_down(context, running)


def profile_scenarios(settings: Settings, context: RunContext, engine: EngineAt, models: MachineModels) -> None:
    """Trace them, each on a server of its own, as far as lease and budget have time; no measurement runs meanwhile."""
    night, file, lease_id = context.night, ledger_file(settings), context.lease.lease_id
    waiting = runs_to_profile(settings, night)
    for run in waiting:
        if not has_time(file, night, lease_id, PROFILE, run):
            get_run_logger().warning("%s was not traced: no time of the lease or budget is left", run.scenario.name)
            continue
        try:
            with record_stage(file, night, lease_id, PROFILE, run):
                profile(models.context_for(context, run), run, engine)
        except BudgetError as error:  # every run is measured, so the night goes on
            get_run_logger().warning("%s was not traced: %s", run.scenario.name, error)
    if waiting:
        upload_runs(settings, night.night, is_machine_rented=True)


def with_failed_starts(settings: Settings, context: RunContext) -> RunContext:
    """The same context with the failed starts of its night until now."""
    return replace(context, failed_starts=read_failed_starts(settings.data, context.night.night))


def require_fit(settings: Settings, context: RunContext, record: RunRecord) -> None:
    """Raise MachineUnfitError where a finished run failed by the machine, and the night may rent another one."""
    is_of_machine = retry_of(record.asked.engine.name, record.failure) == "replace_machine"
    if is_of_machine and _may_replace(settings, context):
        raise _unfit(context, record.reason)


def _evaluate(settings: Settings, context: RunContext, run: PlannedRun, running: RunningServer) -> None:
    """Run the suite's lm-eval tasks against the server process that was measured, after its last run."""
    if not has_tasks(settings, context, run):
        return
    try:
        with record_stage(ledger_file(settings), context.night, context.lease.lease_id, LM_EVAL):
            run_lm_eval(context, run, running)
    except BudgetError as error:  # every run is measured, so the night goes on
        get_run_logger().warning("lm-eval was not run: %s", error)
    upload_runs(settings, context.night.night, is_machine_rented=True)


def _start(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt, timeout_s: float) -> Started:
    with record_stage(ledger_file(settings), context.night, context.lease.lease_id, "serve"):
        state = bring_up(context, run, engine, timeout_s, return_state=True)
    outcome = state.result(raise_on_failure=False)
    if isinstance(outcome, (RunningServer, NightbenchError)):
        return outcome
    if state.is_failed() and isinstance(outcome, Exception) and not isinstance(outcome, PrefectException):
        return unexpected(outcome)
    raise outcome


def _not_again(error: NightbenchError, again_s: float, left_s: float) -> NightbenchError:
    """The same error, which also says why the server is not started once more."""
    said = type(error)(
        f"{error}; it is not started once more: that may take {again_s:.0f} s, and the lease leaves "
        f"{max(0.0, left_s):.0f} s before its machine is released; raise lease_minutes in the suite"
    )
    said.failure = error.failure
    return said


def _keep(settings: Settings, context: RunContext, run: PlannedRun, error: Started) -> None:
    """Keep a failed start; the record of the run that is measured after it has it too."""
    failed = FailedStart(
        server_id=run.scenario.server_id,
        lease_id=context.lease.lease_id,
        failed_at=datetime.now(UTC),
        failure=str(getattr(error, "failure", None)),
        reason=str(error),
    )
    keep_failed_start(settings.data, context.night.night, failed)
    get_run_logger().warning("the server of %s did not start and is started again: %s", run.scenario.name, error)


def _may_replace(settings: Settings, context: RunContext) -> bool:
    """Whether another machine may be rented in place of this one: once, and only for runs that are missing."""
    night = context.night
    others = {lease.lease_id for lease in leases_of(ledger(settings), night)} - {context.lease.lease_id}
    earlier = leases_that_failed(settings.data, night) & others
    return can_be_replaced(night) and not earlier and bool(store.missing_runs(settings.data, night))


def _unfit(context: RunContext, why: object) -> MachineUnfitError:
    return MachineUnfitError(f"machine {context.lease.machine_id} is unfit: {why}")
