"""When the loop polled its sockets, and so how late each read can have been."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

LATE_NS = 1_000_000  # if the loop was busy for longer, one read may hold two writes of the server
WAITED_NS = 200_000  # a poll() that took longer had found nothing at first,
EACH_NS = 1_000  # with so much more for each event it brought


@dataclass(slots=True)
class Turns:
    """Each turn of the loop: when poll() returned, and since when its events can have been waiting."""

    back_ns: "array[int]" = field(default_factory=lambda: array("q"))
    since_ns: "array[int]" = field(default_factory=lambda: array("q"))

    def note(self, called_ns: int, back_ns: int, events: int) -> None:
        """Add a turn: events that poll() waited for are new; events found at once may be as old as the last turn."""
        waited = back_ns - called_ns > WAITED_NS + EACH_NS * events
        last_ns = self.back_ns[-1] if self.back_ns else called_ns
        self.since_ns.append(back_ns if waited else last_ns)
        self.back_ns.append(back_ns)

    def most_late_ns(self, read_ns: int) -> int:
        """The longest time that the bytes of this read can have waited in the socket."""
        turn = bisect_right(self.back_ns, read_ns) - 1
        return read_ns - self.since_ns[turn] if turn >= 0 else 0
