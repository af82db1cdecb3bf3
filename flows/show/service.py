"""Prints the state of the service."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flows.show.console import line, warn
from flows.show.leases import month_line

if TYPE_CHECKING:
    from flows.service.scheduled_nights import ScheduledNight
    from flows.service.status import Status


def show_status(found: "Status") -> None:
    """Print a line for each part of the state, then what is wrong."""
    parts = ", ".join(f"{name}: {state}" for name, state in found.parts.items())
    line(parts or "no service was started for this data folder: `nightbench up` starts one")
    line(f"worker's last poll: {_ago(found.worker_polled_at)}")
    line(f"last night: {_night(found.last_night)}")
    line(f"next night: {_night(found.next_night)}")
    for one in found.suites:
        line(f"suite {one.suite}: newest night {one.night}, {one.age_hours:.1f} hours old")
    for lease in found.leases:
        line(
            f"lease {lease.lease_id} on {lease.target}: {lease.usd:.2f} USD until now, expires "
            f"{lease.expires_at:%Y-%m-%d %H:%M} UTC"
        )
    line(f"billed now: {found.usd_per_hour:.2f} USD per hour")
    line(month_line(found.month))
    for advice in found.advice:
        line(f"advice: {advice}")
    for fault in found.faults:
        warn(f"{fault.title}: {fault.body}")


def _ago(when: datetime | None) -> str:
    return "never" if when is None else f"{(datetime.now(UTC) - when).total_seconds():.0f} s ago"


def _night(night: "ScheduledNight | None") -> str:
    if night is None:
        return "none"
    return f"{night.due_at:%Y-%m-%d %H:%M} UTC, {night.state}{f': {night.message}' if night.message else ''}"
