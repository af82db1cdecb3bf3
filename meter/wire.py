"""The hot loop: wait, stamp, store, give the slot to the next request. Nothing is parsed or printed here.

A slot goes to the next request in the same turn, before any other socket is served, so that the number in flight
stays constant; docs/reference/meter.md defines each time.
"""

import contextlib
import signal
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic_ns

from meter.board import Board
from meter.clock import Ancillary
from meter.connection import ANCILLARY_BYTES, READ_BYTES, Endpoint, new_tls, open_starting, open_waiting
from meter.deadlines import Deadlines
from meter.exchange import Connection, Exchange, class_of_loss
from meter.order import Order
from meter.pace import Pace, PaceState
from meter.poller import MOST_EVENTS, READABLE, WRITABLE, Poller, open_poller
from meter.tls import Tls, explain
from meter.turns import Turns

PROGRESS_NS = 1_000_000_000
CHECK_NS = 5_000_000
NO_ANCILLARY: Ancillary = []


@dataclass(slots=True)
class Wire:
    """Everything in flight: the sockets, who is free, and which request is next."""

    endpoint: Endpoint
    exchanges: Sequence[Exchange]  # in the order of sending, each conversation's turns side by side
    pace: Pace
    timeout_ns: int
    board: Board
    worker: int = 0
    issued: int = 0
    ended: int = 0
    _due: int = 0
    _opened: int = 0
    _reported_ns: int = 0
    _checked_ns: int = 0
    _failed_spare_at: int | None = None  # how many requests were due when a spare connection was refused
    turns: Turns = field(default_factory=Turns)
    _free_slots: deque[int] = field(default_factory=deque)  # since when, the longest free first
    _connections: dict[int, Connection] = field(default_factory=dict)
    _idle: list[Connection] = field(default_factory=list)
    _connecting: dict[int, Connection] = field(default_factory=dict)
    _deadlines: Deadlines = field(init=False)
    _poller: Poller = field(default_factory=open_poller)
    order: Order | None = None  # None: as they stand
    _order: Order = field(init=False)

    def __post_init__(self) -> None:
        """Put the requests in order."""
        self._deadlines = Deadlines(self.timeout_ns)
        self._order = Order(self.exchanges) if self.order is None else self.order

    def connect_first(self, count: int) -> None:
        """Open `count` connections and wait for them; raises OutsideWorldError if the server does not answer."""
        for _ in range(count):
            began_ns = monotonic_ns()
            opened = open_waiting(self.endpoint, self.worker + self._opened)
            connection = self._adopt(*opened, began_ns, is_connecting=False)
            connection.mark_connected()
            self._idle.append(connection)

    def run(self) -> None:
        """Send everything and collect every answer, or stop early once the board is stopped."""
        try:
            called_ns = self._turn(monotonic_ns())
            while self.ended < len(self.exchanges) and not self.board.stopped_by:
                ready = self._poller.poll(self.pace.wait_s(called_ns), MOST_EVENTS)
                self.turns.note(called_ns, monotonic_ns(), len(ready))
                for fd, mask in ready:
                    connection = self._connections.get(fd)
                    if connection is None:
                        continue
                    if mask == READABLE and not connection.is_connecting:
                        self._receive(connection)  # nearly always
                    else:
                        self._serve(connection, mask)
                called_ns = self._turn(monotonic_ns())
        finally:
            self._abandon()
            self.board.report_ended(self.worker, self.ended)

    def _serve(self, connection: Connection, mask: int) -> None:
        if connection.is_connecting:
            self._connected(connection)
        elif mask & ~WRITABLE:
            self._receive(connection)
        else:
            self._send_more(connection)

    def _receive(self, connection: Connection) -> None:
        exchange = connection.exchange
        try:
            if self.endpoint.is_stamped:
                data, ancillary, _flags, _address = connection.socket.recvmsg(READ_BYTES, ANCILLARY_BYTES)
            else:
                data, ancillary = connection.socket.recv(READ_BYTES), NO_ANCILLARY
            now = monotonic_ns()
            if connection.tls is not None and data:
                data = connection.tls.open(data)
                if not data and not connection.is_over:
                    return  # the rest of a record is still to come
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(connection, monotonic_ns(), str(error))
            return
        if exchange is None or not data:
            self._lost(connection, now, "the server closed the connection")
            return
        exchange.reads.append((now, ancillary, data))
        if exchange.framing.feed(data):
            self._answered(connection, exchange, now)

    def _answered(self, connection: Connection, exchange: Exchange, now: int) -> None:
        """Give the slot to the next request, if the connection can carry another one."""
        framing = exchange.framing
        if framing.broken is not None:
            exchange.fail("parse", framing.broken)
        self._end(connection, exchange, now)
        is_kept = framing.keeps_alive and not self.endpoint.is_fresh and not connection.is_over
        if not is_kept or framing.broken is not None or connection.unsent is not None:
            self._drop(connection)
        elif self._may_issue():
            self._issue(connection)
        else:
            connection.answered_ns = now
            self._idle.append(connection)

    def _may_issue(self) -> bool:
        return self.issued < self._due and bool(self._order)

    def _take(self) -> Exchange:
        """Take the next request, and record since when its slot was free."""
        exchange = self._order.take()
        self.issued += 1
        if exchange.intended_ns is None and self._free_slots:
            exchange.slot_free_ns = self._free_slots.popleft()
        return exchange

    def _end(self, connection: Connection, exchange: Exchange, now: int) -> None:
        connection.exchange = None
        self._note_end(exchange, now)
        if self._order.frees_slot(exchange):
            self._free_slots.append(now)

    def _note_end(self, exchange: Exchange, now: int) -> None:
        exchange.ended_ns = now
        self.ended += 1
        if self._order.end(exchange):
            self._failed_spare_at = None  # the next turn needs a connection

    def _lost(self, connection: Connection, now: int, text: str) -> None:
        """Take a lost connection as the end of its answer, or as the failure of its request."""
        exchange = connection.exchange
        if exchange is not None:
            if not exchange.framing.close():
                exchange.fail(class_of_loss(connection, exchange), text)
            self._end(connection, exchange, now)
        self._drop(connection)

    def _issue(self, connection: Connection) -> None:
        """Send the next request on this connection."""
        exchange = self._take()
        connection.exchange = exchange
        exchange.connection, exchange.is_reused = connection, connection.uses > 0
        connection.load(exchange.request.payload)
        self._deadlines.begin(connection, exchange, monotonic_ns())
        exchange.send_start_ns = monotonic_ns()
        self._send_more(connection)

    def _send_more(self, connection: Connection) -> None:
        exchange, unsent = connection.exchange, connection.unsent
        if exchange is None or unsent is None:
            return
        try:
            sent = connection.socket.send(unsent)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._lost(connection, monotonic_ns(), str(error))
            return
        if sent < len(unsent):
            connection.unsent, connection.awaits_room = unsent[sent:], True
            self._poller.modify(connection.fd, READABLE | WRITABLE)
            return
        exchange.send_end_ns, connection.unsent = monotonic_ns(), None
        if connection.awaits_room:
            connection.awaits_room = False
            self._poller.modify(connection.fd, READABLE)

    def _turn(self, now: int) -> int:
        """Send what is due and open the connections that will be needed. Returns `now`."""
        self._due = self.pace.due(now)
        while self._idle and self._may_issue():
            if (connection := self._idle.pop()).has_idled(now):  # only where the client stood still
                self._drop(connection)
            else:
                self._issue(connection)
        if self.issued < len(self.exchanges) and len(self._connections) < self.pace.most_connections:
            self._open_missing(now)
        if now >= self._checked_ns:
            self._checked_ns = now + CHECK_NS
            self._check_timeouts(now)
        return now

    def _check_timeouts(self, now: int) -> None:
        """Do what need not be done in every turn: end late or cancelled requests, stale connections, and report."""
        for connection, exchange in self._deadlines.over(now):
            self._end(connection, exchange, now)
            self._drop(connection)
        for connection in [late for late in self._connecting.values() if now - late.opened_ns > self.timeout_ns]:
            self._refused(connection, now, "no connection in time")
        if now - self._reported_ns >= PROGRESS_NS:
            self._reported_ns = now
            self.board.report_ended(self.worker, self.ended)
            for connection in [stale for stale in self._idle if stale.has_idled(now)]:
                self._drop(connection)
            if self.board.is_orphan:
                self.board.stop(signal.SIGTERM)

    def _open_missing(self, now: int) -> None:
        standing = PaceState(now, self.issued, len(self._connections), len(self._idle), len(self._connecting))
        for _ in range(self.pace.missing(standing)):
            if self._failed_spare_at == self._due and not self._may_issue():
                return  # refused before anything needed it; the next request that falls due tries again
            try:
                sock = open_starting(self.endpoint, self.worker + self._opened)
            except OSError as error:
                self._cannot_connect(now, str(error))
            else:
                connection = self._adopt(sock, new_tls(self.endpoint), monotonic_ns(), is_connecting=True)
                self._connecting[connection.fd] = connection

    def _adopt(self, sock: socket.socket, tls: Tls | None, began_ns: int, *, is_connecting: bool) -> Connection:
        address = str(self.endpoint.address(self.worker + self._opened))
        connection = Connection(self._opened, sock, sock.fileno(), began_ns, is_connecting, address, tls)
        self._opened += 1
        self._connections[connection.fd] = connection
        self._poller.register(connection.fd, WRITABLE if is_connecting else READABLE)
        return connection

    def _connected(self, connection: Connection) -> None:
        try:
            if not connection.finish_connecting():
                self._poller.modify(connection.fd, READABLE)
                return
        except OSError as error:
            self._refused(connection, monotonic_ns(), explain(error, self.endpoint.host))
            return
        del self._connecting[connection.fd]
        connection.mark_connected()
        self._poller.modify(connection.fd, READABLE)
        if self._may_issue():
            self._issue(connection)
        else:
            self._idle.append(connection)

    def _refused(self, connection: Connection, now: int, text: str) -> None:
        self._drop(connection)
        self._cannot_connect(now, text)

    def _cannot_connect(self, now: int, text: str) -> None:
        """Fail the next due request with the connection error; if none is due, try again later."""
        if not self._may_issue():
            self._failed_spare_at = self._due
            return
        exchange = self._take()
        exchange.fail("connect", text)
        self._note_end(exchange, now)
        if self._order.frees_slot(exchange):
            self._free_slots.append(now)

    def _drop(self, connection: Connection) -> None:
        """Close a connection and remove it everywhere."""
        self._poller.unregister(connection.fd)
        del self._connections[connection.fd]
        self._connecting.pop(connection.fd, None)
        if connection in self._idle:
            self._idle.remove(connection)
        connection.socket.close()

    def _abandon(self) -> None:
        """Close everything; what was still in flight counts as cancelled, with no end."""
        for connection in list(self._connections.values()):
            if connection.exchange is not None:
                connection.exchange.fail("cancelled", "the run was stopped before the answer was complete")
            with contextlib.suppress(OSError):
                self._drop(connection)
        self._poller.close()
