"""When a request may go and how many connections that takes: in a closed loop, and in an open one."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from meter.clock import NS

LONGEST_WAIT_S = 0.05  # the loop looks at signals and time-outs at least this often
LEAD_NS = 100_000_000  # open loop: a connection is opened this long before it is needed
SPIN_NS = 2_000_000  # open loop: poll() counts in milliseconds, so the last two are spent polling without a wait


@dataclass(frozen=True, slots=True)
class PaceState:
    """Requests and connections at one moment."""

    now_ns: int
    issued: int
    connections: int  # open or opening
    idle: int
    connecting: int


class Pace(Protocol):
    """What differs between a closed and an open loop."""

    most_connections: int  # never open more than these

    def due(self, now_ns: int) -> int:
        """Count the requests that may have been sent by now."""

    def missing(self, standing: PaceState) -> int:
        """Count the connections to open now."""

    def wait_s(self, now_ns: int) -> float:
        """Return how long the loop may sleep."""


class ClosedPace:
    """Keeps `concurrency` requests in flight until `total` have been sent."""

    def __init__(self, concurrency: int, total: int) -> None:
        self.most_connections = concurrency
        self._total = total

    def due(self, _now_ns: int) -> int:
        """Every request may go; only slots are scarce."""
        return self._total

    def missing(self, standing: PaceState) -> int:
        """Replace lost connections, while there is something to send on them."""
        slots = self.most_connections - standing.connections
        return min(slots, self._total - standing.issued - standing.idle - standing.connecting)

    def wait_s(self, _now_ns: int) -> float:
        """Only answers matter, and they wake the loop themselves."""
        return LONGEST_WAIT_S


class OpenPace:
    """Sends each request at its own time, whether or not earlier ones were answered."""

    def __init__(self, intended_ns: Sequence[int]) -> None:
        self.most_connections = len(intended_ns)
        self._intended_ns = intended_ns  # ascending

    def due(self, now_ns: int) -> int:
        """Count the requests whose time has come."""
        return bisect_right(self._intended_ns, now_ns)

    def missing(self, standing: PaceState) -> int:
        """One connection for each request that is due or soon will be, and has none."""
        soon = bisect_right(self._intended_ns, standing.now_ns + LEAD_NS)
        return soon - standing.issued - standing.idle - standing.connecting

    def wait_s(self, now_ns: int) -> float:
        """Until shortly before the next thing to do: a connection to open, or a request to send."""
        next_send = bisect_right(self._intended_ns, now_ns)
        next_lead = bisect_right(self._intended_ns, now_ns + LEAD_NS)
        moments = [self._intended_ns[next_send] - SPIN_NS] if next_send < len(self._intended_ns) else []
        if next_lead < len(self._intended_ns):
            moments.append(self._intended_ns[next_lead] - LEAD_NS)
        wait_ns = min(moments, default=now_ns + NS) - now_ns
        return min(max(wait_ns / NS, 0.0), LONGEST_WAIT_S)
