"""What the service does: its parts, the next and the last nights, the age of each suite's data, and what is billed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.errors import UsageError
from flows.service.api import polled_at, reach
from flows.service.keepers import keeper_of
from flows.service.parts import Part, Service
from flows.service.scheduled_nights import UP, ScheduledNight, fault, faults_of_nights, read_nights
from flows.service.start import responds
from infra.bootstrap import ledger, spending_of_month
from infra.ledger.lease import Lease
from infra.ledger.month import MonthSpending
from infra.notices.event import Event
from warehouse.lake.query import ask

POLLED = timedelta(minutes=2)  # a worker reports every 30 seconds
_SUITES = (
    "SELECT suite, arg_max(night, started_at) AS night, max(started_at) AS newest FROM measurements "
    "WHERE started_at IS NOT NULL GROUP BY suite ORDER BY suite"
)


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
    month: MonthSpending
    faults: tuple[Event, ...]


def read_status(service: Service, now: datetime | None = None) -> Status:
    """The state at a time, by default now. Starts nothing and writes nothing but a missing ledger."""
    now = now or datetime.now(UTC)
    # Without a folder there is no service, and nights are started by cron or by hand.
    parts = dict(_parts(service)) if service.folder.exists() else {}
    faults = list(_faults_of_parts(parts))
    polled, nights = None, list[ScheduledNight]()
    if parts.get("server") == "running":
        with reach(service) as client:
            polled, found = polled_at(client), read_nights(client, now)
        nights = found or []
        faults += faults_of_nights(found, now)
        if parts["worker"] == "running" and (polled is None or now - polled > POLLED):
            faults.append(fault("worker", "the worker runs but has not polled the server for two minutes", UP))
    leases = tuple(_open_lease(lease, now) for lease in ledger(service.settings).open_leases())
    suites = tuple(_suites(service, now))
    faults += [*_faults_of_leases(leases, now), *_faults_of_suites(suites, service.settings.stale_hours)]
    return Status(
        parts=parts,
        worker_polled_at=polled,
        next_night=min((one for one in nights if one.due_at >= now), key=lambda one: one.due_at, default=None),
        last_night=max((one for one in nights if one.due_at < now), key=lambda one: one.due_at, default=None),
        suites=suites,
        leases=leases,
        usd_per_hour=sum(one.usd_per_hour for one in leases),
        month=spending_of_month(service.settings, now),
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


def _faults_of_parts(parts: dict[str, str]) -> Iterator[Event]:
    for name, state in parts.items():
        if state != "running":
            yield fault(name, f"the {name} of the service is {state}", f"no night starts by itself: {UP}")


def _faults_of_leases(leases: tuple[OpenLease, ...], now: datetime) -> Iterator[Event]:
    for one in leases:
        if one.expires_at < now:
            what = (
                f"lease {one.lease_id} on {one.target} has expired and is still open, at {one.usd_per_hour:.2f} USD/h"
            )
            yield fault(f"lease-{one.lease_id}", what, "run `nightbench reap`, and look at the cloud's console")


def _faults_of_suites(suites: tuple[SuiteAge, ...], stale_hours: float) -> Iterator[Event]:
    for one in suites:
        if one.age_hours > stale_hours:
            what = f"suite {one.suite} has no data since night {one.night}"
            advice = f"nights failed or did not start for more than {stale_hours:g} hours (NIGHTBENCH_STALE_HOURS)"
            yield fault(f"stale-{one.suite}", what, advice)


def _suites(service: Service, now: datetime) -> Iterator[SuiteAge]:
    try:
        found = ask(service.data, _SUITES).rows
    except UsageError:  # no night was loaded yet
        return
    for suite, night, newest in found:
        yield SuiteAge(suite, night, round((now - newest).total_seconds() / 3600, 1))


def _open_lease(lease: Lease, now: datetime) -> OpenLease:
    return OpenLease(lease.lease_id, lease.cloud, lease.usd_per_hour, round(lease.usd(now), 2), lease.expires_here_at())
