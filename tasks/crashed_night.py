"""What a crashed flow run leaves of its night, in a sentence: a run that is red may have lost nothing."""

from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger

from bench.errors import UnreadableResultError, UsageError
from infra.settings import Settings
from infra.storage import store

NIGHT = "night: "  # begins the tag of a flow run that names its night


def what_is_left(data: Path, run: FlowRun) -> str:
    """Whether each night of a crashed flow run is complete, and which command measures or loads the rest of it."""
    nights = [tag.removeprefix(NIGHT) for tag in run.tags if tag.startswith(NIGHT)]
    return "; ".join(_left_of(data, night) for night in nights) or "it had planned no night"


def _left_of(data: Path, night: str) -> str:
    try:
        planned = store.read_night(data, night)
    except (UsageError, UnreadableResultError) as error:
        return str(error)
    missing = len(store.missing_runs(data, planned))
    resume = f"`nightbench run --resume {night}`"
    if missing:
        return f"night {night}: {missing} of {len(planned.runs)} runs are missing; {resume} measures them"
    if not (data / "reports" / f"{night}.html").exists():
        return f"night {night}: every run is measured, but there is no page yet; {resume} loads and reports them"
    return f"night {night} is complete: every run is measured and loaded, and its page is written"


def log_what_is_left(flow: Flow[..., object], flow_run: FlowRun, state: State[object]) -> None:
    """Log it in the flow run; Prefect passes the three arguments by these names.

    The state stays as it is: to set it again would be a second event of one crash.
    """
    del state
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(flow_run.id)  # the run as the worker knows it is from before its plan
    flow_run_logger(flow_run, flow).warning("%s", what_is_left(Settings().data.absolute(), run))
