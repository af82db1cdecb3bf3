"""Flow runs whose process and worker died together: nobody is left to say so, and the next night would wait for ever.

A worker tells the server a process's number, and not on which host. So a night holds a lock of its own while it lives,
and a run is called dead on that proof alone: its lock is free, and the server still believes in it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from infra.processes.liveness import dead_names, liveness_lock, remove_lock
from infra.settings import Settings

UNENDED = (StateType.RUNNING, StateType.CANCELLING)


@contextmanager
def provably_alive() -> Iterator[None]:
    """Let a reaper see, for as long as the block lasts, that the process of this flow run lives."""
    run_id = runtime.flow_run.id
    with liveness_lock(Settings().data.absolute(), str(run_id)):
        yield


def end_dead_runs() -> list[str]:
    """Mark every run crashed that is proven dead, and return their names; what it holds is the next one's then."""
    data = Settings().data.absolute()
    found = []
    for run_id in dead_names(data):
        name = _end(run_id)
        remove_lock(data, run_id)
        found += [name] if name else []
    return found


def _end(run_id: str) -> str | None:
    """Mark a run crashed if it has not ended and return its name; None where it has, or this server knows none."""
    with get_client(sync_client=True) as client:
        try:
            run = client.read_flow_run(UUID(run_id))
        except (ObjectNotFound, ValueError):
            return None
        if run.state is None or run.state.type not in UNENDED:
            return None
        message = "its process is gone, and nobody was left to say so: the reaper found its lock free"
        client.set_flow_run_state(run.id, Crashed(message=message), force=True)
        return run.name
