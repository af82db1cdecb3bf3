"""Sessions whose turns pause: which turn goes next, and when.

A turn is due its pause after the answer before it, and that moment is its intended time. So many sessions are open at a
time, or each begins at its own.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

from meter.clock import NS
from meter.exchange import Exchange
from meter.order import Order
from meter.pace import LEAD_NS, LONGEST_WAIT_S, SPIN_NS, PaceState


class SessionOrder(Order):
    """The turns that are due, in the order in which they fell due, then new sessions as far as they may begin."""

    def __init__(self, exchanges: Sequence[Exchange], most_open: int | None) -> None:
        super().__init__(exchanges)
        self.total = len(exchanges)
        self._most_open = most_open  # None: each session has a time to begin
        self._open = 0
        self._now_ns = 0
        self._pausing: list[tuple[int, int, Exchange]] = []  # a heap by the time at which each is due, and its index
        self._due: deque[Exchange] = deque()

    def __bool__(self) -> bool:
        """Whether a request may be sent."""
        return bool(self._due) or self._may_begin(self._now_ns)

    def take(self) -> Exchange:
        """Remove and return the next request."""
        if self._due:
            return self._due.popleft()
        self._open += 1
        return self._beginnings.popleft()

    def end(self, exchange: Exchange) -> bool:
        """Let the turn after this one pause; return whether it may be sent at once."""
        later = exchange.next_turn
        if later is None:
            self._open -= 1
            return False
        ended_ns = exchange.ended_ns or self._now_ns
        later.intended_ns = ended_ns + round(later.request.prompt.pause_s * NS)
        if later.intended_ns <= ended_ns:
            self._due.append(later)
            return True
        heappush(self._pausing, (later.intended_ns, later.request.index, later))
        return False

    def frees_slot(self, exchange: Exchange) -> bool:
        """Whether its session has ended, and another one may begin in its place."""
        return self._most_open is not None and exchange.next_turn is None

    def advance(self, now_ns: int) -> None:
        """Make the turns available that are due by now."""
        self._now_ns = now_ns
        while self._pausing and self._pausing[0][0] <= now_ns:
            self._due.append(heappop(self._pausing)[2])

    def wanted(self, until_ns: int) -> int:
        """Count the requests that may be sent until then."""
        pausing = 0
        if self._pausing and self._pausing[0][0] <= until_ns:
            pausing = sum(due_ns <= until_ns for due_ns, _index, _exchange in self._pausing)
        return len(self._due) + pausing + self._beginning(until_ns)

    def next_ns(self) -> int | None:
        """Return when the next request falls due that is not due yet."""
        moments = [self._pausing[0][0]] if self._pausing else []
        if self._most_open is None and self._beginnings:
            moments.append(self._beginnings[0].intended_ns or 0)
        return min(moments, default=None)

    def _may_begin(self, now_ns: int) -> bool:
        if not self._beginnings:
            return False
        if self._most_open is not None:
            return self._open < self._most_open
        return (self._beginnings[0].intended_ns or 0) <= now_ns

    def _beginning(self, until_ns: int) -> int:
        if self._most_open is not None:
            return min(self._most_open - self._open, len(self._beginnings))
        count = 0
        for exchange in self._beginnings:
            if (exchange.intended_ns or 0) > until_ns:
                break
            count += 1
        return count


class SessionPace:
    """Sends each turn when it is due."""

    def __init__(self, order: SessionOrder, most_connections: int) -> None:
        self.most_connections = most_connections
        self._order = order

    def due(self, now_ns: int) -> int:
        """Every request may go that the order lets go."""
        self._order.advance(now_ns)
        return self._order.total

    def missing(self, standing: PaceState) -> int:
        """One connection for each request that is due or soon will be, and has none."""
        wanted = self._order.wanted(standing.now_ns + LEAD_NS) - standing.idle - standing.connecting
        return min(wanted, self.most_connections - standing.connections)

    def wait_s(self, now_ns: int) -> float:
        """Until shortly before a request is due, or its connection must open."""
        next_ns = self._order.next_ns()
        if next_ns is None:
            return LONGEST_WAIT_S
        wait_ns = next_ns - now_ns - (LEAD_NS if next_ns - now_ns > LEAD_NS else SPIN_NS)
        return min(max(wait_ns / NS, 0.0), LONGEST_WAIT_S)
