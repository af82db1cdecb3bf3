"""The nights that the schedule has started or will start, as Prefect's server lists them, and what is wrong there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from flows.service.parts import SKIPPED
from infra.notices.event import Event

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

NIGHTLY = "nightly/nightly"
MISSED = "night.missed"  # the kind of these events
UP = "run `nightbench up`"
LOOK_BACK = timedelta(days=3)
LATE = timedelta(minutes=15)  # a worker takes a run that is due within 15 seconds


@dataclass(frozen=True)
class ScheduledNight:
    """A run of the nightly deployment: when it was or is due, and the name and message of its state."""

    due_at: datetime
    state: str
    message: str | None
    is_waiting: bool  # it has not begun, whatever the name of its state: a worker's own is `Submitting`


def read_nights(client: "SyncPrefectClient", now: datetime, deployment: str = NIGHTLY) -> list[ScheduledNight] | None:
    """The nights of the last and of the next days; None where the server has no such deployment."""
    from prefect.client.schemas.filters import (  # noqa: PLC0415
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
    )
    from prefect.client.schemas.sorting import FlowRunSort  # noqa: PLC0415
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    try:
        nightly = client.read_deployment_by_name(deployment)
    except ObjectNotFound:
        return None
    runs = client.read_flow_runs(
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[nightly.id])),
        flow_run_filter=FlowRunFilter(expected_start_time=FlowRunFilterExpectedStartTime(after_=now - LOOK_BACK)),
        sort=FlowRunSort.EXPECTED_START_TIME_ASC,  # the server returns 200 at most
    )
    return [_scheduled(run, run.expected_start_time) for run in runs if run.expected_start_time]


def faults_of_nights(nights: Sequence[ScheduledNight] | None, now: datetime) -> Iterator[Event]:
    """What is wrong with the schedule and with the nights of the last days."""
    if nights is None:
        what = f"the server has no deployment {NIGHTLY}, so no night is scheduled"
        yield _fault("deployment", what, f"{UP}, which deploys prefect.yaml again")
        return
    if not any(night.due_at >= now for night in nights):
        yield _fault("schedule", "no night is scheduled", f"{UP}, and look at the schedule of the deployment nightly")
    for night in sorted(nights, key=lambda night: night.due_at):
        key, name = f"{night.due_at:%Y%m%dT%H%M}", f"the night of {night.due_at:%Y-%m-%d %H:%M} UTC"
        if night.is_waiting and now - night.due_at > LATE:
            advice = "`nightbench status` shows the worker; a night before it may still run"
            yield _fault(key, f"{name} has not begun", advice)
        elif night.state == SKIPPED:
            yield _fault(key, f"{name} was skipped", night.message or "")


def _scheduled(run: "FlowRun", due: datetime) -> ScheduledNight:
    message = None if run.state is None else run.state.message
    is_waiting = run.state is not None and (run.state.is_scheduled() or run.state.is_pending())
    return ScheduledNight(due, run.state_name or "unknown", message, is_waiting)


def _fault(name: str, what: str, advice: str) -> Event:
    return Event(f"{MISSED}/{name}", "act", what, advice)
