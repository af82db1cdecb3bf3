"""What Prefect calls after a night that was cancelled, killed or failed: it releases and loads what is left.

Prefect kills a cancelled run 30 s after its signal, which the release may need. So the worker loads afterwards, by a
hook that runs without a time limit in a process of its own.
"""

from prefect import runtime
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow

from flows.end_state import is_at_its_end
from infra.bootstrap import clouds, ledger_file
from infra.leases import leftovers
from infra.settings import Settings
from infra.storage import store
from tasks.crashed_night import NIGHT
from tasks.loading import judge, load, report
from tasks.server_calls import post


def release_leftovers(flow: Flow[..., object], flow_run: FlowRun, state: State[object]) -> None:
    """Release what this flow run or a killed night left rented; Prefect passes the three arguments by these names."""
    del flow, flow_run, state
    release_all(Settings())


def release_all(settings: Settings) -> None:
    """Release what this process or a killed night left rented."""
    leftovers.release_leftovers(settings.data, ledger_file(settings), clouds(settings), include_own=True)


def release_after_error(flow: Flow[..., object], flow_run: FlowRun, state: State[object]) -> None:
    """Release what a night left rented that an error ended; one that only has bad runs released everything itself."""
    if not is_at_its_end(state):
        release_leftovers(flow, flow_run, state)


def load_cancelled(flow: Flow[..., object], flow_run: FlowRun, state: State[object]) -> None:
    """Load, judge and report what a cancelled night had measured; nothing where it had measured no run."""
    del flow, state
    with get_client(sync_client=True) as client:
        tags = client.read_flow_run(flow_run.id).tags  # the run as the worker knows it is from before its plan
    for tag in tags:
        if tag.startswith(NIGHT):
            load_measured(Settings(), tag.removeprefix(NIGHT))


def load_measured(settings: Settings, night: str) -> None:
    """Load, judge and report the finished runs of a night; the others become rows that were not run."""
    planned = store.read_night(settings.data, night)
    if not any(store.is_done(settings.data, planned, run) for run in planned.runs):
        return
    load(night)
    judge(night, planned.rerun_of)
    report(night)


def tag_with_night(night: str) -> None:
    """Tag this flow run with its night: the UI filters by it, and `load_cancelled` reads it."""
    run_id, tags = runtime.flow_run.id, list(runtime.flow_run.tags)
    if run_id is None:
        return

    def tag() -> None:
        with get_client(sync_client=True) as client:
            client.update_flow_run(run_id, tags=[*tags, f"{NIGHT}{night}"])

    post("the tag of the night", tag)
