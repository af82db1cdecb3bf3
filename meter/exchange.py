"""One request, the connection that carries it and its answer, as stored during the load; nothing is parsed here."""

import os
import socket
from dataclasses import dataclass, field
from time import monotonic_ns

from meter.clock import Ancillary
from meter.framing import Framing
from meter.prepare import PreparedRequest
from meter.tls import Tls

# Servers close a kept connection that is idle, vLLM's after 5 s, and a request that is under way then is lost.
IDLE_NS = 2_000_000_000

Read = tuple[int, Ancillary, bytes]  # user-space time (monotonic ns), ancillary data with the kernel's, bytes


@dataclass(slots=True)
class Exchange:
    """One request and its answer; times are CLOCK_MONOTONIC nanoseconds, None until they happen."""

    request: PreparedRequest
    intended_ns: int | None = None  # open loop only
    slot_free_ns: int | None = None  # closed loop only: when the slot it took fell free; None for the first of a slot
    connection: "Connection | None" = None
    is_reused: bool | None = None
    cancel_after_ns: int | None = None  # when the plan cancels it, after its sending
    send_start_ns: int | None = None
    send_end_ns: int | None = None
    ended_ns: int | None = None  # the answer was complete, or had failed
    reads: list[Read] = field(default_factory=list)
    framing: Framing = field(default_factory=Framing)
    failure: str | None = None  # connect, send, timeout, truncated, parse, dropped_on_reuse or cancelled
    failure_text: str | None = None
    next_turn: "Exchange | None" = None  # of the same conversation; it is sent after this one has ended

    @property
    def is_issued(self) -> bool:
        """Whether it was sent, or its sending failed."""
        return self.send_start_ns is not None or self.failure is not None

    def settle(self) -> None:
        """Parse the framing that was skipped during the load; fail an answer that only seemed complete."""
        self.framing.settle()
        if self.failure in {None, "timeout"} and self.framing.broken is not None:
            self.fail("parse", self.framing.broken)
        elif self.failure is None and not self.framing.is_complete:
            self.fail("truncated", "the bytes taken for the end of the answer were content")

    def fail(self, failure: str, text: str) -> None:
        """Record why this request got no complete answer."""
        self.failure, self.failure_text = failure, text


@dataclass(slots=True, eq=False)
class Connection:
    """A socket, the exchange it carries now, and how many it has carried."""

    number: int
    socket: socket.socket
    fd: int
    opened_ns: int  # when it began to connect
    is_connecting: bool
    address: str = ""  # of the server, as resolved
    tls: Tls | None = None
    connected_ns: int | None = None  # with its TLS handshake
    port: int | None = None  # the local one
    uses: int = 0  # requests begun on it
    answered_ns: int | None = None  # its last answer, where no request followed at once
    exchange: Exchange | None = None
    unsent: memoryview | None = None
    awaits_room: bool = False  # the socket would not take all of it

    @property
    def is_over(self) -> bool:
        """Whether the server has announced, by TLS, that it sends no more."""
        return self.tls is not None and self.tls.is_closed

    def has_idled(self, now: int) -> bool:
        """Whether an idle connection had its last answer so long ago that its server may be about to close it."""
        return self.answered_ns is not None and now - self.answered_ns > IDLE_NS

    def finish_connecting(self) -> bool:
        """Go on to connect: False while the TLS handshake needs more bytes; raises OSError if it has failed."""
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        return self.tls is None or self.tls.shake(self.socket)

    def mark_connected(self) -> None:
        """Record that it is established."""
        self.is_connecting = False
        self.connected_ns, self.port = monotonic_ns(), self.socket.getsockname()[1]

    def load(self, payload: bytes) -> None:
        """Take the bytes of the next request, encrypted where there is TLS."""
        self.uses += 1
        self.unsent = memoryview(payload if self.tls is None else self.tls.seal(payload))


def class_of_loss(connection: Connection, exchange: Exchange) -> str:
    """Name the failure of an exchange whose connection was lost."""
    if exchange.reads:
        return "truncated"
    if connection.uses > 1:
        return "dropped_on_reuse"  # the server closed a connection that it had kept open
    return "truncated" if connection.unsent is None else "send"
