"""What everything costs: one interval a resource, from the second its creation is accepted to its end."""

from dataclasses import dataclass, field

HOURS_A_MONTH = 672.0  # a month of volume or snapshot is billed as 28 days of hours
VOLUME_USD_PER_GIB_MONTH = 0.10
SNAPSHOT_USD_PER_GB_MONTH = 0.06


@dataclass
class Interval:
    """One resource's time on the bill, in seconds since 1970; `ended` is None while it goes on billing."""

    resource: str
    kind: str  # droplet, volume or snapshot
    name: str
    began: float
    usd_per_hour: float
    minimum_s: float = 0.0
    ended: float | None = None
    foreign: bool = False
    size: str | None = None
    region: str | None = None

    def usd(self, now: float) -> float:
        """What it has cost until now, or until its end; a minimum is charged from the first second."""
        lasted_s = (now if self.ended is None else self.ended) - self.began
        return max(lasted_s, self.minimum_s) / 3600 * self.usd_per_hour


@dataclass
class Bill:
    """Every interval there ever was, in the order in which they began."""

    intervals: list[Interval] = field(default_factory=list)

    def open(self, interval: Interval) -> None:
        self.intervals.append(interval)

    def close(self, kind: str, resource: str, at: float) -> None:
        """End a resource's interval; one that has ended stays as it is."""
        for interval in self.intervals:
            if (interval.kind, interval.resource) == (kind, resource) and interval.ended is None:
                interval.ended = at

    def void(self, resource: str, at: float) -> None:
        """End a droplet that was never placed; nothing is charged for it."""
        for interval in self.intervals:
            if interval.resource == resource and interval.ended is None:
                interval.ended, interval.minimum_s, interval.usd_per_hour = at, 0.0, 0.0

    def usd(self, now: float, prefix: str = "") -> float:
        """What everything of this prefix has cost that began before now."""
        begun = [interval for interval in self.intervals if interval.began <= now and interval.name.startswith(prefix)]
        return sum(interval.usd(now) for interval in begun)
