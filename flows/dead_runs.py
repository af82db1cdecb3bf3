"""Marks flow runs whose process has ended without a report to the server, or was never started.

The next night would wait for them for ever.

A worker reports a process id to the server, but not its host. So a night holds a lock while its process lives, and a
run counts as lost only if its lock is free and the server still lists it as running. A night that found the server lost
leaves its final state in the lock's file.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from prefect import runtime
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterEndTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed, Scheduled
from pydantic import BaseModel, ValidationError

from infra.processes.liveness import dead_names, keep_text, liveness_lock, read_text, remove_lock
from tasks.crashed_night import what_is_left

UNFINISHED = (StateType.RUNNING, StateType.CANCELLING)
# A worker marks a run as crashed whose process it lost; what the run itself has left is more exact.
WITHOUT_END = (*UNFINISHED, StateType.CRASHED)
WORKER_LABEL = "prefect.worker.name"  # of each run that a worker has taken
CRASHED_WITHIN = timedelta(hours=1)  # a reap looks every ten minutes
STARTS_WITHIN = timedelta(minutes=10)  # a worker starts a process in seconds, on a busy computer in a minute


class FinalState(BaseModel):
    """The state in which a run ended that could not report it."""

    type: StateType
    name: str
    message: str | None


@dataclass(frozen=True)
class DeadRun:
    """A run whose process has ended, and what of it was reported to the server; `is_killed`: it left no final state."""

    run_id: str
    sentence: str
    is_killed: bool


@dataclass(frozen=True)
class LivenessLock:
    """The lock of one flow run."""

    data: Path
    run_id: str

    def keep(self, state: State[object]) -> None:
        """Leave this state in the lock's file, for the reaper that finds the lock free."""
        final = FinalState(type=state.type, name=state.name or state.type.value.capitalize(), message=state.message)
        keep_text(self.data, self.run_id, final.model_dump_json())


@contextmanager
def hold_liveness_lock(data: Path) -> Iterator[LivenessLock]:
    """Hold this flow run's liveness lock during the block, so that a reaper sees that its process lives."""
    lock = LivenessLock(data.absolute(), str(runtime.flow_run.id))
    with liveness_lock(lock.data, lock.run_id):
        yield lock


def report_dead_runs(data: Path) -> list[DeadRun]:
    """Report every lost run to the server and return what was reported; their places in the queue become free.

    A killed run is returned although the server knows of its end, or does not know it: its worker may have seen it die.
    """
    found = []
    for run_id in dead_names(data.absolute()):
        final = _final_state(data.absolute(), run_id)
        reported = _report(data, run_id, final)
        remove_lock(data.absolute(), run_id)
        if reported or final is None:
            found.append(DeadRun(run_id, reported or f"flow run {run_id} was killed", final is None))
    return found


def schedule_again(now: datetime) -> list[str]:
    """Schedule every run again that a worker took and that has not begun; return a sentence for each.

    A worker that is killed between the two leaves its run pending. Without a process it has no lock, and it keeps its
    place in the queue, so no later night would begin. A run that finds no server when it starts exits, and its worker
    marks it as crashed: nothing of it has begun, so it starts again, once.
    """
    again = []
    with get_client(sync_client=True) as client:
        for run in _deployed_runs(client, StateType.PENDING):
            if run.state is not None and run.state.timestamp < now - STARTS_WITHIN:
                _offer_again(client, run)
                again.append(f"flow run {run.name} was taken by a worker that never started it: it is scheduled again")
        for run in _deployed_runs(client, StateType.CRASHED, ended_after=now - CRASHED_WITHIN):
            states = [state.type for state in client.read_flow_run_states(run.id)]
            is_of_a_night = run.parent_task_run_id is not None  # which sees its end, and decides itself
            if StateType.RUNNING not in states and states.count(StateType.CRASHED) == 1 and not is_of_a_night:
                _offer_again(client, run)
                again.append(f"flow run {run.name} crashed before it had begun: it is scheduled again, once")
    return again


def report_lost_runs(data: Path, worker: str, running: Collection[str]) -> list[str]:
    """Report the runs of a worker that was killed whose processes do not run either; return a sentence for each.

    What was taken and not started is scheduled again at once. A run without a lock, such as a reap, is marked as
    crashed; one with a lock is left to the next reap, which also sends a message. A run that the worker took in the
    very moment of its end has no label yet and waits for that reap, too.
    """
    others = {*running, *dead_names(data.absolute())}
    found = []
    with get_client(sync_client=True) as client:
        for run in _deployed_runs(client, StateType.PENDING, *UNFINISHED):
            if run.labels.get(WORKER_LABEL) != worker or str(run.id) in others:
                continue
            if run.state_type == StateType.PENDING:
                _offer_again(client, run)
                found.append(f"flow run {run.name} was taken by a worker that was killed: it is scheduled again")
            else:
                message = f"its worker and its process were killed; {what_is_left(data, run)}"
                client.set_flow_run_state(run.id, Crashed(message=message), force=True)
                found.append(f"flow run {run.name} is marked as crashed: its process was killed with its worker")
    return found


def _deployed_runs(client: SyncPrefectClient, *states: StateType, ended_after: datetime | None = None) -> list[FlowRun]:
    """The runs of deployments in these states."""
    return client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))),
            deployment_id=FlowRunFilterDeploymentId(is_null_=False),
            end_time=None if ended_after is None else FlowRunFilterEndTime(after_=ended_after),
        )
    )


def _offer_again(client: SyncPrefectClient, run: FlowRun) -> None:
    """Give a run that was taken and not started to the next worker, due when it was."""
    client.set_flow_run_state(run.id, Scheduled(scheduled_time=run.expected_start_time), force=True)


def _final_state(data: Path, run_id: str) -> FinalState | None:
    """What the run left; None if its process was killed."""
    try:
        return FinalState.model_validate_json(read_text(data, run_id))
    except ValidationError:
        return None


def _report(data: Path, run_id: str, final: FinalState | None) -> str | None:
    """Report one run and return a sentence; None if the server knows its end, or does not know the run."""
    with get_client(sync_client=True) as client:
        try:
            run = client.read_flow_run(UUID(run_id))
        except (ObjectNotFound, ValueError):
            return None
        if run.state is None or run.state.type not in (UNFINISHED if final is None else WITHOUT_END):
            return None
        if final is None:
            message = f"its process is gone: the reaper found its liveness lock free; {what_is_left(data, run)}"
            client.set_flow_run_state(run.id, Crashed(message=message), force=True)
            return f"flow run {run.name} is marked as crashed: its process is gone"
        message = f"{final.message or 'It ended'} (reported later: the server did not respond at its end)"
        client.set_flow_run_state(run.id, State(type=final.type, name=final.name, message=message), force=True)
        return f"flow run {run.name} ended as {final.name} while the server did not respond"
