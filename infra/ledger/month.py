"""What leases, and what is kept between nights, cost in a calendar month (UTC), and the limit for a further lease.

A lease counts in the month in which its machine was last requested. While it is open, the rest of its time is
reserved: so two nights that rent at the same time cannot exceed the limit together. What is kept, such as a volume or
an image, counts to the end of the month: it is billed until a person deletes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from infra.ledger.lease import Lease

LIMIT = "NIGHTBENCH_MONTH_USD_MAX"
NOT_ASKED = "images and models (`nightbench leases` asks the clouds and the bucket for them)"


@dataclass(frozen=True)
class KeptCosts:
    """What is kept between nights costs in a month, to its end, by kind; `uncounted` says what has an unknown cost."""

    usd_of: tuple[tuple[str, float], ...] = ()  # such as ("volumes", 12.5)
    uncounted: tuple[str, ...] = ()

    @property
    def usd(self) -> float:
        """All of it that is known."""
        return sum(usd for _kind, usd in self.usd_of)

    def __str__(self) -> str:
        """Return what is counted, and what is not: `volumes 12.50, images 3.00 USD to its end; not counted: ...`."""
        known = ", ".join(f"{kind} {usd:.2f}" for kind, usd in self.usd_of if usd)
        missing = f"not counted: {', '.join(self.uncounted)}" if self.uncounted else ""
        return "; ".join(filter(None, [known and f"{known} USD to its end", missing]))


NOTHING_KEPT = KeptCosts()


@dataclass(frozen=True)
class MonthSpending:
    """The cost of a month's leases until now, what the open ones may still cost, and that of what is kept."""

    month: str  # such as 2026-11
    spent_usd: float
    reserved_usd: float
    limit_usd: float | None  # None: there is no limit
    kept: KeptCosts = NOTHING_KEPT

    def why_exceeded(self, usd: float) -> str | None:
        """Why a lease that may cost this much does not fit, as a sentence; None where it does, or costs nothing."""
        taken = self.spent_usd + self.reserved_usd + self.kept.usd
        if self.limit_usd is None or usd <= 0 or taken + usd <= self.limit_usd:
            return None
        reserved = f" and up to {self.reserved_usd:.2f} USD are reserved by open leases" if self.reserved_usd else ""
        kept = f" (what is kept: {self.kept})" if str(self.kept) else ""
        return (
            f"{self.spent_usd:.2f} USD are spent in {self.month}{reserved}{kept}, and this lease may "
            f"cost {usd:.2f} USD: that exceeds {LIMIT} = {self.limit_usd:.2f}; raise it, or wait for the next month"
        )


def month_spending(
    leases: Iterable[Lease], now: datetime, limit_usd: float | None, kept: KeptCosts = NOTHING_KEPT
) -> MonthSpending:
    """Return the spending of the month that `now` is in."""
    of_month = [one for one in leases if f"{one.intended_at:%Y-%m}" == f"{now:%Y-%m}"]
    spent = sum(one.usd(now) for one in of_month)
    reserved = sum(max(0.0, _usd_at_expiry(one) - one.usd(now)) for one in of_month if one.state != "released")
    return MonthSpending(f"{now:%Y-%m}", spent, reserved, limit_usd, kept)


def _usd_at_expiry(lease: Lease) -> float:
    """What a lease costs if its machine is kept until it expires; one that is gone already costs no more."""
    begins = lease.rented_at or lease.intended_at
    lasts = lease.expires_here_at() - begins if lease.released_at is None else timedelta(0)
    return lease.earlier_usd + max(0.0, lasts.total_seconds()) / 3600 * lease.usd_per_hour
