"""What the leases and volumes of a ledger cost in a calendar month (UTC), and the limit for a further lease.

A lease counts in the month in which its machine was requested. While it is open, the rest of its time is reserved: so
two nights that rent at the same time cannot exceed the limit together. A volume that exists counts to the end of the
month: it is billed until a person deletes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.errors import BudgetError
from infra.ledger.lease import Lease

LIMIT = "NIGHTBENCH_MONTH_USD_MAX"


@dataclass(frozen=True)
class MonthSpending:
    """The cost of a month's leases until now, what the open ones may still cost, and that of volumes, to its end."""

    month: str  # such as 2026-11
    spent_usd: float
    reserved_usd: float
    limit_usd: float | None  # None: there is no limit
    volumes_usd: float = 0.0

    def why_exceeded(self, usd: float) -> str | None:
        """Why a lease that may cost this much does not fit, as a sentence; None where it does, or costs nothing."""
        taken = self.spent_usd + self.reserved_usd + self.volumes_usd
        if self.limit_usd is None or usd <= 0 or taken + usd <= self.limit_usd:
            return None
        reserved = f" and up to {self.reserved_usd:.2f} USD are reserved by open leases" if self.reserved_usd else ""
        volumes = f", volumes cost {self.volumes_usd:.2f} USD to its end" if self.volumes_usd else ""
        return (
            f"{self.spent_usd:.2f} USD are spent in {self.month}{reserved}{volumes}, and this lease may "
            f"cost {usd:.2f} USD: that exceeds {LIMIT} = {self.limit_usd:.2f}; raise it, or wait for the next month"
        )


def month_spending(
    leases: Iterable[Lease], now: datetime, limit_usd: float | None, volumes_usd: float = 0.0
) -> MonthSpending:
    """Return the spending of the month that `now` is in."""
    of_month = [one for one in leases if f"{one.intended_at:%Y-%m}" == f"{now:%Y-%m}"]
    spent = sum(one.usd(now) for one in of_month)
    reserved = sum(max(0.0, _usd_at_expiry(one) - one.usd(now)) for one in of_month if one.state != "released")
    return MonthSpending(f"{now:%Y-%m}", spent, reserved, limit_usd, volumes_usd)


def require_month(spending: MonthSpending, usd: float) -> None:
    """Raise BudgetError where a further lease that may cost this much exceeds the month's limit."""
    why = spending.why_exceeded(usd)
    if why is not None:
        raise BudgetError(f"nothing is rented: {why}")


def _usd_at_expiry(lease: Lease) -> float:
    """What a lease costs if its machine is kept until it expires; one that is gone already costs no more."""
    begins = lease.rented_at or lease.intended_at
    lasts = lease.expires_here_at() - begins if lease.released_at is None else timedelta(0)
    return lease.earlier_usd + max(0.0, lasts.total_seconds()) / 3600 * lease.usd_per_hour
