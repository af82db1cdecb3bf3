"""What the status of the service shows: the age of each suite's data, and open leases."""

from dataclasses import dataclass
from datetime import datetime


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
    machine_id: str | None = None


@dataclass(frozen=True)
class SeriesAge:
    """A series that nights of the last days were to measure, and its newest night with a good run."""

    suite: str
    machine: str  # its name in the suite; empty in a suite of one machine
    series: str
    night: str
