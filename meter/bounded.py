"""One HTTP request outside of a load, whose whole answer has one deadline and one size limit.

A timeout of a socket counts from byte to byte: a server that sends one byte a second keeps a client for ever, and one
that sends without end fills its memory.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol, cast

ANSWER_BYTES = 16 << 20  # of a whole answer; the largest page of counters that was seen has less than 1 MiB
READ_BYTES = 1 << 16


class TooLargeAnswerError(ConnectionError):
    """An answer has more bytes than are read."""


class NotHttpError(ConnectionError):
    """An answer is not HTTP, or ends early."""


class LateAnswerError(ConnectionError):
    """An answer is not complete in time, or comes too slowly; no TimeoutError, which a library may take for its own."""


class Limit(Protocol):
    """Until when the next bytes of an answer must arrive, and how many."""

    def left_s(self) -> float:
        """Return the seconds until the deadline, more than 0; raise TimeoutError after it."""
        ...

    def take(self, count: int) -> None:
        """Count the bytes of the answer until now; raise TooLargeAnswerError if they are too many."""
        ...


@dataclass(frozen=True)
class Bounds:
    """A moment of the monotonic clock at which an answer must be complete, and the most bytes of it that are read."""

    until_s: float
    answer_bytes: int
    seconds: float  # that the answer was given

    @classmethod
    def within(cls, seconds: float, answer_bytes: int = ANSWER_BYTES) -> "Bounds":
        """From now on."""
        return cls(time.monotonic() + seconds, answer_bytes, seconds)

    def left_s(self) -> float:
        """Seconds until the deadline, more than 0; TimeoutError after it."""
        left = self.until_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def take(self, count: int) -> None:
        """Raise TooLargeAnswerError if so many bytes are more than the limit."""
        if count > self.answer_bytes:
            raise TooLargeAnswerError(f"the answer is larger than {self.answer_bytes} bytes")


class Pace:
    """The least pace of a large answer, whose size and duration have no limit: so many bytes in so many seconds."""

    def __init__(self, seconds: float, least_bytes: int) -> None:
        self._seconds, self._least_bytes = seconds, least_bytes
        self._until_s, self._counted = time.monotonic() + seconds, 0

    def left_s(self) -> float:
        """Return the seconds until the deadline of the bytes that come now; raise TimeoutError after it."""
        left = self._until_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def take(self, count: int) -> None:
        """Move the deadline once enough bytes have come before it."""
        if count - self._counted >= self._least_bytes:
            self._until_s, self._counted = time.monotonic() + self._seconds, count


@dataclass(frozen=True)
class Answer:
    """Status, headers in their order, and the whole body of an answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of a name in lower case."""
        return next((value for own, value in self.headers if own.lower() == name), None)


def exchange(
    connection: http.client.HTTPConnection,
    request: tuple[str, str, str | None, Mapping[str, str]],
    bounds: Bounds,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """The answer to a request (method, path, body, headers), on a connection that the caller closes.

    Raises OSError where there is no complete answer: TimeoutError at the deadline, TooLargeAnswerError at the limit,
    NotHttpError where the answer is not HTTP or ends early. The system limits the look-up of a name.
    """
    method, path, body, headers = request
    try:
        connection.sock = sock = _connected(connection.host, connection.port, bounds, context)
        connection.response_class = limited(http.client.HTTPResponse, bounds, TimeoutError, sock)  # type: ignore[assignment]  # called as the class is
        sock.settimeout(bounds.left_s())
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return Answer(answer.status, tuple(answer.getheaders()), _body(answer, bounds))
    except TimeoutError as error:
        raise TimeoutError(f"no complete answer to {method} {path} after {bounds.seconds:g} s") from error
    except http.client.RemoteDisconnected as error:  # an OSError too: it closed the connection without an answer
        raise NotHttpError(f"{method} {path}: {error}") from error
    except OSError:  # a refused certificate is a ValueError too
        raise
    except (http.client.HTTPException, ValueError) as error:
        raise NotHttpError(f"{method} {path}: {error!r}") from error


def _connected(host: str, port: int, bounds: Bounds, context: ssl.SSLContext | None) -> socket.socket:
    """A connection to the first address that takes one; its handshake is done."""
    failures: list[OSError] = []
    for family, kind, protocol, _name, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(bounds.left_s())
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(bounds.left_s())
            return sock if context is None else context.wrap_socket(sock, server_hostname=host)
        except OSError as error:
            failures.append(error)
            sock.close()
    raise failures[0] if failures else OSError(f"{host} has no address")


def limited(
    response: Callable[..., http.client.HTTPResponse],
    limit: Limit,
    late: type[OSError] = LateAnswerError,
    sock: socket.socket | None = None,
) -> Callable[..., http.client.HTTPResponse]:
    """Return a `response_class` of a connection whose answers are read within a limit; `late` is raised beyond it."""
    return lambda given, *more, **named: response(
        cast("socket.socket", _Source(given if sock is None else sock, limit, late)), *more, **named
    )


def _body(answer: http.client.HTTPResponse, bounds: Bounds) -> bytes:
    """All of the body, in pieces: http.client would allocate what a server announces."""
    pieces: list[bytes] = []
    while piece := answer.read(READ_BYTES):
        pieces.append(piece)
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    bounds.left_s()
    return b"".join(pieces)


@dataclass(frozen=True)
class _Source:
    """What HTTPResponse asks of a socket: a file."""

    sock: socket.socket
    limit: Limit
    late: type[OSError]

    def makefile(self, _mode: str) -> IO[bytes]:
        return io.BufferedReader(_Bounded(self))


class _Bounded(io.RawIOBase):
    """What a socket receives, within a limit."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._file = source.sock.makefile("rb", buffering=0)  # http.client may close the socket before its file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._source.sock.settimeout(self._source.limit.left_s())
            count = self._file.readinto(buffer) or 0
        except TimeoutError as error:
            raise self._source.late("the answer did not come in time") from error
        self._count += count
        self._source.limit.take(self._count)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
