"""What the service does: its parts, the next and the last nights, the age of each suite's data, and what is billed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bench.errors import UsageError
from flows.service.api import polled_at, reach
from flows.service.keepers import keeper_of
from flows.service.parts import SKIPPED, Part, Service
from flows.service.start import responds
from infra.bootstrap import ledger
from infra.ledger.lease import Lease
from infra.notices.event import Event
from warehouse.lake.query import ask

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

NIGHTLY = "nightly/nightly"
FAULT = "fault"  # the kind of these events
UP = "run `nightbench up`"
LOOK_BACK = timedelta(days=3)
LATE = timedelta(minutes=15)  # a worker takes a run that is due within 15 seconds
POLLED = timedelta(minutes=2)  # a worker reports every 30 seconds
_SUITES = (
    "SELECT suite, arg_max(night, started_at) AS night, max(started_at) AS newest FROM measurements "
    "WHERE started_at IS NOT NULL GROUP BY suite ORDER BY suite"
)


@dataclass(frozen=True)
class ScheduledNight:
    """A run of the nightly deployment: when it was or is due, and the name and message of its state."""

    due_at: datetime
    state: str
    message: str | None


@dataclass(frozen=True)
class SuiteAge:
    """The newest data of a suite in the warehouse."""

    suite: str
    night: str
    age_hours: float


@dataclass(frozen=True)
class OpenLease:
    """A machine that is billed now, or may be."""

    lease_id: str
    target: str
    usd_per_hour: float
    usd: float
    expires_at: datetime


@dataclass(frozen=True)
class Status:
    """The state of the service, which has no `parts` where it was never started; while all is well, no `faults`."""

    parts: dict[str, str]
    worker_polled_at: datetime | None
    next_night: ScheduledNight | None
    last_night: ScheduledNight | None
    suites: tuple[SuiteAge, ...]
    leases: tuple[OpenLease, ...]
    usd_per_hour: float
    faults: tuple[Event, ...]


def read_status(service: Service, now: datetime | None = None) -> Status:
    """The state at a time, by default now. Starts nothing and writes nothing but a missing ledger."""
    now = now or datetime.now(UTC)
    # Without a folder there is no service, and nights are started by cron or by hand.
    parts = dict(_parts(service)) if service.folder.exists() else {}
    faults = list(_faults_of_parts(parts))
    polled, runs = None, list[ScheduledNight]()
    if parts.get("server") == "running":
        polled, runs = _of_server(service, now)
        faults += _faults_of_runs(runs, now)
        if parts["worker"] == "running" and (polled is None or now - polled > POLLED):
            faults.append(_fault("worker", "the worker runs but has not polled the server for two minutes", UP))
    leases = tuple(_open_lease(lease, now) for lease in ledger(service.settings).open_leases())
    suites = tuple(_suites(service, now))
    faults += [*_faults_of_leases(leases, now), *_faults_of_suites(suites, service.settings.stale_hours)]
    return Status(
        parts=parts,
        worker_polled_at=polled,
        next_night=min((run for run in runs if run.due_at >= now), key=lambda run: run.due_at, default=None),
        last_night=max((run for run in runs if run.due_at < now), key=lambda run: run.due_at, default=None),
        suites=suites,
        leases=leases,
        usd_per_hour=sum(one.usd_per_hour for one in leases),
        faults=tuple(faults),
    )


def _parts(service: Service) -> Iterator[tuple[str, str]]:
    keeper = keeper_of(service)
    for part in service.parts():
        yield part.name, _state(part, is_running=keeper.is_running(part))


def _state(part: Part, *, is_running: bool) -> str:
    if not is_running:
        return "stopped"
    return "running" if part.address is None or responds(part) else "not responding"


def _of_server(service: Service, now: datetime) -> tuple[datetime | None, list[ScheduledNight]]:
    """When a worker last polled, and the nights of the last and the next days."""
    with reach(service) as client:
        runs = [_scheduled(run, run.expected_start_time) for run in _runs(client, now) if run.expected_start_time]
        return polled_at(client), runs


def _runs(client: "SyncPrefectClient", now: datetime) -> "list[FlowRun]":
    from prefect.client.schemas.filters import (  # noqa: PLC0415
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
    )

    nightly = client.read_deployment_by_name(NIGHTLY)
    return client.read_flow_runs(
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[nightly.id])),
        flow_run_filter=FlowRunFilter(expected_start_time=FlowRunFilterExpectedStartTime(after_=now - LOOK_BACK)),
    )


def _scheduled(run: "FlowRun", due: datetime) -> ScheduledNight:
    message = None if run.state is None else run.state.message
    return ScheduledNight(due, run.state_name or "unknown", message)


def _fault(key: str, what: str, advice: str) -> Event:
    return Event(f"{FAULT}/{key}", "act", what, advice)


def _faults_of_parts(parts: dict[str, str]) -> Iterator[Event]:
    for name, state in parts.items():
        if state != "running":
            yield _fault(name, f"the {name} of the service is {state}", f"no night starts by itself: {UP}")


def _faults_of_runs(runs: list[ScheduledNight], now: datetime) -> Iterator[Event]:
    if not any(run.due_at >= now for run in runs):
        yield _fault("schedule", "no night is scheduled", f"{UP}, and look at the schedule of the deployment nightly")
    for run in sorted(runs, key=lambda run: run.due_at):
        if run.state in {"Scheduled", "Late", "Pending"} and now - run.due_at > LATE:
            key, what = f"night-{run.due_at:%Y%m%dT%H%M}", f"the night of {run.due_at:%Y-%m-%d %H:%M} UTC has not begun"
            yield _fault(key, what, "`nightbench status` shows the worker; a night before it may still run")
        elif run.state == SKIPPED:
            what = f"the night of {run.due_at:%Y-%m-%d %H:%M} UTC was skipped"
            yield _fault(f"night-{run.due_at:%Y%m%dT%H%M}", what, run.message or "")


def _faults_of_leases(leases: tuple[OpenLease, ...], now: datetime) -> Iterator[Event]:
    for one in leases:
        if one.expires_at < now:
            what = (
                f"lease {one.lease_id} on {one.target} has expired and is still open, at {one.usd_per_hour:.2f} USD/h"
            )
            yield _fault(f"lease-{one.lease_id}", what, "run `nightbench reap`, and look at the cloud's console")


def _faults_of_suites(suites: tuple[SuiteAge, ...], stale_hours: float) -> Iterator[Event]:
    for one in suites:
        if one.age_hours > stale_hours:
            what = f"suite {one.suite} has no data since night {one.night}"
            advice = f"nights failed or did not start for more than {stale_hours:g} hours (NIGHTBENCH_STALE_HOURS)"
            yield _fault(f"stale-{one.suite}", what, advice)


def _suites(service: Service, now: datetime) -> Iterator[SuiteAge]:
    try:
        found = ask(service.data, _SUITES).rows
    except UsageError:  # no night was loaded yet
        return
    for suite, night, newest in found:
        yield SuiteAge(suite, night, round((now - newest).total_seconds() / 3600, 1))


def _open_lease(lease: Lease, now: datetime) -> OpenLease:
    return OpenLease(lease.lease_id, lease.cloud, lease.usd_per_hour, round(lease.usd(now), 2), lease.expires_here_at())
