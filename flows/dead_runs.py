"""Marks flow runs as crashed whose process and worker both died; the next night would wait for them for ever.

A worker reports a process id to the server, but not its host. So a night holds a lock while its process lives, and a
run counts as dead only if its lock is free and the server still lists it as running.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from infra.processes.liveness import dead_names, liveness_lock, remove_lock

UNFINISHED = (StateType.RUNNING, StateType.CANCELLING)


@contextmanager
def hold_liveness_lock(data: Path) -> Iterator[None]:
    """Hold this flow run's liveness lock during the block, so that a reaper sees that its process lives."""
    run_id = runtime.flow_run.id
    with liveness_lock(data.absolute(), str(run_id)):
        yield


def crash_dead_runs(data: Path) -> list[str]:
    """Mark every dead run as crashed and return their names; their concurrency slots become free."""
    found = []
    for run_id in dead_names(data.absolute()):
        name = _crash(run_id)
        remove_lock(data.absolute(), run_id)
        found += [name] if name else []
    return found


def _crash(run_id: str) -> str | None:
    """Mark an unfinished run as crashed and return its name; None if it has finished or this server lacks it."""
    with get_client(sync_client=True) as client:
        try:
            run = client.read_flow_run(UUID(run_id))
        except (ObjectNotFound, ValueError):
            return None
        if run.state is None or run.state.type not in UNFINISHED:
            return None
        message = "its process is gone: the reaper found its liveness lock free"
        client.set_flow_run_state(run.id, Crashed(message=message), force=True)
        return run.name
