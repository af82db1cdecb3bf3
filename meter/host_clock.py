"""The distance between this host's clock and another's, measured by round trips as NTP does (RFC 5905, section 8)."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A question and its answer: here when it was sent and received, and the other host's clock in between."""

    sent_ns: int
    there_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The other host's CLOCK_MONOTONIC minus ours, right to within `error_ns`: half of the shortest round trip."""

    offset_ns: int
    error_ns: int


def offset_of(trips: Iterable[RoundTrip]) -> ClockOffset:
    """The offset by the shortest round trip; however its time is divided over the two ways, it is within the error."""
    best = min(trips, key=lambda trip: trip.received_ns - trip.sent_ns)
    took_ns = best.received_ns - best.sent_ns
    return ClockOffset(best.there_ns - (best.sent_ns + best.received_ns) // 2, (took_ns + 1) // 2)


def worst_error_ns(before: ClockOffset, after: ClockOffset) -> int:
    """How far a time of the other host may be off at any moment between two readings, placed by the first of them."""
    moved_ns = abs(after.offset_ns - before.offset_ns)
    return max(before.error_ns, moved_ns + after.error_ns)
