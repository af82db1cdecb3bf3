"""Run one machine of a night on whichever worker takes it, and fetch what that worker uploaded.

The night itself plans, loads, judges and reports; a run of the deployment `machine-night` measures one machine on one
lease. The plan and the run folders travel by the bucket: see docs/adr/0054.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State
from prefect.deployments import run_deployment
from prefect.exceptions import PrefectException
from prefect.states import Cancelled, Cancelling, Crashed

from bench.errors import LeaseError, NightbenchError, ObjectStoreError, UsageError
from bench.machine_nights import machine_night, machine_nights
from bench.record import NightRecord
from flows.deployed import is_deployed
from flows.service import postgres
from flows.service.api import polled_at
from flows.service.parts import POOL, Service
from flows.spread.machine_end import error_of
from flows.spread.pulse import SILENCE_S, Pulse, newest_heartbeat
from infra.settings import Settings
from infra.storage import store
from infra.storage.bucket import bucket_location, fetch, upload_night
from tasks.artifacts import NightProgress
from tasks.crashed_night import NIGHT
from tasks.planning import runs_elsewhere
from tasks.server_calls import post

DEPLOYMENT = "machine-night/machine-night"
MACHINE = "machine: "  # begins the tag of a flow run that names its machine
POLL_S = 5.0
FETCH_PAUSES_S = (2.0, 10.0, 30.0)  # a file that the worker of another machine replaces changes under a fetch
_FOLDER = threading.Lock()  # of the night: the threads of its machines upload and fetch one after another


def is_spread(settings: Settings, night: NightRecord) -> bool:
    """Whether the machines of this night are given to whichever worker takes them."""
    return settings.spread and is_deployed() and night.where.is_rented and len(machine_nights(night)) > 1


def require_means(settings: Settings) -> None:
    """Raise UsageError, before anything is rented, where nights are spread and their workers lack what they share."""
    if not settings.spread:
        return
    if bucket_location(settings) is None:
        raise UsageError(
            "NIGHTBENCH_SPREAD needs a bucket, by which the workers exchange a night: set NIGHTBENCH_S3_BUCKET, and "
            "NIGHTBENCH_S3_ENDPOINT if it is not on AWS"
        )
    if settings.database_url is None and not postgres.is_made(Service(settings).database):
        raise UsageError(
            "NIGHTBENCH_SPREAD needs PostgreSQL as the database of Prefect's server, since several workers lock "
            "SQLite: run `nightbench up --postgres`, or set NIGHTBENCH_DATABASE_URL"
        )


def run_elsewhere(settings: Settings, part: NightRecord, progress: UUID) -> BaseException | None:
    """Have a worker run the missing runs of a machine on one lease; return what ended it early, if anything.

    HostError where the process of that flow run is gone: its missing runs are then run on another lease, as those of a
    lost machine. `progress` is the bar of the night.
    """
    name = part.suite.machine.name
    try:
        _send(settings, part.night)
        with get_client(sync_client=True) as client:
            run = _unfinished_or_new(client, part)
            get_run_logger().info("machine %s is flow run %s", name, run.name)
            state = _wait(client, run, settings.capacity_wait_s)
        _bring(settings, part.night)
    except NightbenchError as error:
        return error
    planned = machine_night(store.read_night(settings.data, part.night), name)
    missing = len(store.missing_runs(settings.data, planned))
    done = len(planned.runs) - missing
    NightProgress(done + missing, done, progress, runs_elsewhere(settings, planned))
    if state.is_crashed() and not missing:
        get_run_logger().warning("machine %s was lost after its last run: %s", name, state.message)
        return None
    return error_of(state)


def _send(settings: Settings, night: str) -> None:
    """Upload the plan, and what is measured; ObjectStoreError where the bucket does not take it."""
    with _FOLDER:
        failures = upload_night(settings, night, settings.s3_patience_s)
    if failures:
        raise ObjectStoreError(f"no worker can run it: {failures[0]}")


def _bring(settings: Settings, night: str) -> None:
    """Download what a worker uploaded."""
    for pause_s in FETCH_PAUSES_S:
        try:
            with _FOLDER:
                fetch(settings, night)
        except ObjectStoreError as error:
            get_run_logger().warning("night %s is fetched again in %.0f s: %s", night, pause_s, error)
            time.sleep(pause_s)
        else:
            return
    with _FOLDER:
        fetch(settings, night)


def _tags(part: NightRecord) -> list[str]:
    return [f"{NIGHT}{part.night}", f"{MACHINE}{part.suite.machine.name}"]


def _unfinished_or_new(client: SyncPrefectClient, part: NightRecord) -> FlowRun:
    try:
        return _unfinished(client, part) or _begin(part)
    except (httpx.HTTPError, PrefectException) as error:
        raise LeaseError(
            f"Prefect's server did not take the run of deployment {DEPLOYMENT}: {error}; run `nightbench up`, which "
            "deploys it"
        ) from error


def _unfinished(client: SyncPrefectClient, part: NightRecord) -> FlowRun | None:
    """A flow run of this machine that is not over: its night was killed, and is resumed now."""
    state = FlowRunFilterState(type=FlowRunFilterStateType(not_any_=sorted(TERMINAL_STATES)))
    found = client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(all_=_tags(part)), state=state))
    return next(iter(found), None)


def _begin(part: NightRecord) -> FlowRun:
    """Have Prefect's server offer this machine's part to the workers."""
    machine = part.suite.machine.name
    run = run_deployment(
        DEPLOYMENT,
        parameters={"night": part.night, "machine": machine},
        flow_run_name=f"machine {machine} of night {part.night}",
        timeout=0,
        tags=_tags(part),
    )
    if not isinstance(run, FlowRun):
        raise TypeError(run)
    return run


def _wait(client: SyncPrefectClient, run: FlowRun, patience_s: float) -> State[object]:
    """The final state of a flow run; one whose process is gone is marked as crashed. A stop of the night cancels it.

    Raises LeaseError where it has not begun and no worker has polled the server for `patience_s`.
    """
    pulse = Pulse(time.monotonic())
    with _cancelled_with_us(run.id):
        while True:
            try:
                state = _look(client, run.id, pulse, patience_s)
            except (httpx.HTTPError, PrefectException) as error:
                get_run_logger().warning("Prefect's server does not say how %s is: %s", run.name, error)
                pulse.pause(time.monotonic())
                state = None
            if state is not None:
                return state
            time.sleep(POLL_S)


def _look(client: SyncPrefectClient, run: UUID, pulse: Pulse, patience_s: float) -> State[object] | None:
    """The final state of a flow run; None while it lives, or waits for a worker."""
    known = client.read_flow_run(run)
    state = known.state
    if state is None or state.is_final():
        return state
    if state.is_scheduled() or state.is_pending():
        pulse.pause(time.monotonic())
        _require_worker(client, known.work_pool_name or POOL, patience_s)
    elif pulse.is_lost(newest_heartbeat(client, run), time.monotonic()):
        message = f"no heartbeat for {SILENCE_S:.0f} s: its computer, its process or its connection is gone"
        ended: State[object] = Cancelled(message=message) if state.is_cancelling() else Crashed(message=message)
        client.set_flow_run_state(run, ended, force=True)
    return None


def _require_worker(client: SyncPrefectClient, pool: str, patience_s: float) -> None:
    polled, longest = polled_at(client, pool=pool), timedelta(seconds=patience_s)
    if polled is None or datetime.now(UTC) - polled > longest:
        raise LeaseError(
            f"no worker of pool {pool} has polled the server for {longest}: start one by `nightbench up`, or on "
            "another computer as docs/how-to/spread-a-night.md says"
        )


@contextmanager
def _cancelled_with_us(run: UUID) -> Iterator[None]:
    """Cancel a flow run where the block ends early: the night is stopped, or waits for it no longer."""

    def cancel() -> None:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(run, Cancelling())

    try:
        yield
    except BaseException:
        post("the cancellation of a machine", cancel)
        raise
