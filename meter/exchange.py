"""One request and what came back, as stored while the clock runs; nothing here is parsed yet."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from meter.clock import Ancillary
from meter.framing import Framing
from meter.prepare import PreparedRequest

if TYPE_CHECKING:
    from meter.connection import Connection

Read = tuple[int, Ancillary, bytes]  # user-space time (monotonic ns), ancillary data with the kernel's, bytes


@dataclass(slots=True)
class Exchange:
    """One request on its way; times are CLOCK_MONOTONIC nanoseconds, None for what has not happened."""

    request: PreparedRequest
    intended_ns: int | None = None  # open loop only
    slot_free_ns: int | None = None  # closed loop only: when the slot it took fell free; None for the first of a slot
    connection: "Connection | None" = None
    is_reused: bool | None = None
    send_start_ns: int | None = None
    send_end_ns: int | None = None
    ended_ns: int | None = None  # the answer was complete, or had failed
    reads: list[Read] = field(default_factory=list)
    framing: Framing = field(default_factory=Framing)
    failure: str | None = (
        None  # what the wire saw: connect, send, timeout, truncated, parse, dropped_on_reuse, cancelled
    )
    failure_text: str | None = None
    next_turn: "Exchange | None" = None  # of the same conversation; it may go once this one has ended

    @property
    def is_issued(self) -> bool:
        """Whether it was tried at all."""
        return self.send_start_ns is not None or self.failure is not None

    def settle(self) -> None:
        """Look closely at what the clock left no time for; an answer that only seemed whole has failed."""
        self.framing.settle()
        if self.failure in {None, "timeout"} and self.framing.broken is not None:
            self.fail("parse", self.framing.broken)
        elif self.failure is None and not self.framing.is_complete:
            self.fail("truncated", "what looked like the end of the answer was none")

    def fail(self, failure: str, text: str) -> None:
        """Note why this request got no whole answer."""
        self.failure, self.failure_text = failure, text
