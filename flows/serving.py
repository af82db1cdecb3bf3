"""Start the server of a run, once more where the class of its failure says so, and give up a machine that is unfit."""

from dataclasses import replace
from datetime import UTC, datetime

from prefect import get_run_logger
from prefect.exceptions import PrefectException

from bench.engines.by_name import retry_of
from bench.errors import MachineUnfitError, NightbenchError, unexpected
from bench.record import FailedStart, PlannedRun, RunRecord
from infra.bootstrap import ledger, ledger_file
from infra.engines.server import EngineAt, RunningServer
from infra.leases.stage_budget import leases_of, left_of_lease_s, record_stage
from infra.measurement.run import RunContext
from infra.settings import Settings
from infra.storage import store
from infra.storage.failed_starts import keep_failed_start, leases_that_failed, read_failed_starts
from tasks.machine import can_be_replaced
from tasks.measuring import bring_up, ready_offline_engine

LONGER = 2.0  # times ready_timeout_s, for a server that was still starting when its time was over

Started = RunningServer | EngineAt | NightbenchError  # of runs that need no server it is the engine


def start_server(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt) -> Started:
    """The server for a run, or the error why it did not start; what Prefect or a signal stops is raised.

    A server is started at most twice on one machine, and only once where the second start may outlast the lease.
    Raises MachineUnfitError where its failure calls for another machine and the night may rent one; the run is then
    still missing. Raises BudgetError before a start too many.
    """
    if run.scenario.workload.is_offline:
        return ready_offline_engine(context, run, engine)
    timeout_s = context.night.suite.ready_timeout_s
    started = _start(settings, context, run, engine, timeout_s)
    retry = _retry_of(run, started)
    if isinstance(started, NightbenchError) and retry in ("same", "longer"):
        again_s = timeout_s * (LONGER if retry == "longer" else 1.0)
        left_s = left_of_lease_s(ledger_file(settings), context.lease.lease_id)
        if again_s > left_s:
            return _not_again(started, again_s, left_s)
        _keep(settings, context, run, started)
        started = _start(settings, context, run, engine, again_s)
    if _retry_of(run, started) == "replace_machine" and _may_replace(settings, context):
        _keep(settings, context, run, started)
        raise _unfit(context, started)
    return started


def with_failed_starts(settings: Settings, context: RunContext) -> RunContext:
    """The same context with the failed starts of its night until now."""
    return replace(context, failed_starts=read_failed_starts(settings.data, context.night.night))


def require_fit(settings: Settings, context: RunContext, record: RunRecord) -> None:
    """Raise MachineUnfitError where a finished run failed by the machine, and the night may rent another one."""
    is_of_machine = retry_of(record.asked.engine.name, record.failure) == "replace_machine"
    if is_of_machine and _may_replace(settings, context):
        raise _unfit(context, record.reason)


def _start(settings: Settings, context: RunContext, run: PlannedRun, engine: EngineAt, timeout_s: float) -> Started:
    with record_stage(ledger_file(settings), context.night, context.lease.lease_id, "serve"):
        state = bring_up(context, run, engine, timeout_s, return_state=True)
    outcome = state.result(raise_on_failure=False)
    if isinstance(outcome, (RunningServer, NightbenchError)):
        return outcome
    if state.is_failed() and isinstance(outcome, Exception) and not isinstance(outcome, PrefectException):
        return unexpected(outcome)
    raise outcome


def _retry_of(run: PlannedRun, started: Started) -> str:
    failure = started.failure if isinstance(started, NightbenchError) else None
    return retry_of(run.scenario.engine.name, failure)


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
