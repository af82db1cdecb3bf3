"""What the service does: its parts, the next and the last nights, the age of each suite's data, and what is billed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from flows.service import faults
from flows.service.api import polled_at, reach
from flows.service.busy_database import why_postgresql
from flows.service.keepers import keeper_of
from flows.service.parts import WORKER, Part, Service
from flows.service.scheduled_nights import ScheduledNight, faults_of_nights, read_nights
from flows.service.start import responds_in_time
from flows.service.views import OpenLease, SeriesAge, SuiteAge
from infra.bootstrap import ledger, spending_of_month
from infra.ledger.lease import Lease
from infra.ledger.month import MonthSpending
from infra.notices.event import Event
from warehouse.lake.database import has_data
from warehouse.lake.query import ask

_SUITES = (
    "SELECT suite, arg_max(night, started_at) AS night, max(started_at) AS newest FROM measurements "
    "WHERE started_at IS NOT NULL GROUP BY suite ORDER BY suite"
)
_SERIES = """
SELECT suite, coalesce(machine, '') AS machine, model || ' ' || scenario AS series,
    max(night) FILTER (verdict IN ('accepted', 'suspect')) AS newest
FROM measurements WHERE is_control IS NOT TRUE AND suite IS NOT NULL
GROUP BY ALL HAVING max(night) >= ? AND newest IS NOT NULL
"""


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
    advice: tuple[str, ...]  # what would be better; nothing is wrong
    faults: tuple[Event, ...]


def read_status(service: Service, now: datetime | None = None) -> Status:
    """The state at a time, by default now. Starts nothing and writes nothing but a missing ledger."""
    now = now or datetime.now(UTC)
    # Without a folder there is no service, and nights are started by cron or by hand.
    parts = dict(_parts(service)) if service.folder.exists() else {}
    found = list(faults.of_parts(parts))
    polled, nights = None, list[ScheduledNight]()
    if parts.get("server") == "running":
        with reach(service) as client:
            polled, listed = polled_at(client, WORKER), read_nights(client, now)
        nights = listed or []
        found += [*faults_of_nights(listed, now), *faults.of_worker(parts["worker"], polled, now)]
    leases = tuple(_open_lease(lease, now) for lease in ledger(service.settings).open_leases())
    suites = tuple(_suites(service, now))
    hours, retired = service.settings.stale_hours, service.settings.retired_suites
    watched = [one for one in suites if one.suite not in retired]
    found += [*faults.of_leases(leases, now), *faults.of_killed(service.data), *faults.of_disk(service.settings)]
    found += [*faults.of_suites(watched, hours), *faults.of_series(_stale_series(service, watched, now), hours)]
    return Status(
        parts=parts,
        worker_polled_at=polled,
        next_night=min((one for one in nights if one.due_at >= now), key=lambda one: one.due_at, default=None),
        last_night=max((one for one in nights if one.due_at < now), key=lambda one: one.due_at, default=None),
        suites=suites,
        leases=leases,
        usd_per_hour=sum(one.usd_per_hour for one in leases),
        month=spending_of_month(service.settings, now, ask=False),
        advice=tuple(filter(None, [why_postgresql(service, keeper_of(service)) if parts else None])),
        faults=tuple(found),
    )


def _parts(service: Service) -> Iterator[tuple[str, str]]:
    keeper = keeper_of(service)
    for part in service.parts():
        yield part.name, _state(part, is_running=keeper.is_running(part))


def _state(part: Part, *, is_running: bool) -> str:
    if not is_running:
        return "stopped"
    return "running" if not part.can_respond or responds_in_time(part) else "not responding"


def _suites(service: Service, now: datetime) -> Iterator[SuiteAge]:
    for suite, night, newest in _rows(service, _SUITES):
        yield SuiteAge(suite, night, round((now - newest).total_seconds() / 3600, 1))


def _stale_series(service: Service, watched: Sequence[SuiteAge], now: datetime) -> dict[bool, list[SeriesAge]]:
    """The series that nights of late were to measure: those without a good run of late (True), and the others.

    Only those of watched suites with data of late. Names of nights are times, so they are compared as such.
    """
    hours = service.settings.stale_hours
    cutoff = f"{now - timedelta(hours=hours):%Y-%m-%dT%H%M%S}Z"
    measured = {suite.suite for suite in watched if suite.age_hours <= hours}
    found: dict[bool, list[SeriesAge]] = {True: [], False: []}
    for row in _rows(service, _SERIES, cutoff):
        one = SeriesAge(*row)
        if one.suite in measured:
            found[one.night < cutoff].append(one)
    return found


def _rows(service: Service, query: str, *parameters: object) -> tuple[tuple[Any, ...], ...]:
    """The rows of a query; none without a data folder. A lake that cannot be read is an error."""
    return ask(service.data, query, parameters).rows if has_data(service.data) else ()


def _open_lease(lease: Lease, now: datetime) -> OpenLease:
    return OpenLease(
        lease.lease_id,
        lease.cloud,
        lease.usd_per_hour,
        round(lease.usd(now), 2),
        lease.expires_here_at(),
        lease.machine_id,
    )
