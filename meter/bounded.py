"""One HTTP request outside of a load, whose whole answer has one deadline and one size limit.

A timeout of a socket counts from byte to byte: a server that sends one byte a second keeps a client for ever, and one
that sends without end fills its memory.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

ANSWER_BYTES = 16 << 20  # of a whole answer; the largest page of counters that was seen has less than 1 MiB
READ_BYTES = 1 << 16


class TooLargeAnswerError(ConnectionError):
    """An answer has more bytes than are read."""


class NotHttpError(ConnectionError):
    """An answer is not HTTP, or ends early."""


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
        connection.response_class = lambda _sock, *more, **named: _response(sock, bounds, *more, **named)  # type: ignore[assignment]  # called as the class is
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


def _response(sock: socket.socket, bounds: Bounds, *more: Any, **named: Any) -> http.client.HTTPResponse:
    return http.client.HTTPResponse(cast("socket.socket", _Source(sock, bounds)), *more, **named)


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
    bounds: Bounds

    def makefile(self, _mode: str) -> IO[bytes]:
        return io.BufferedReader(_Bounded(self.sock, self.bounds))


class _Bounded(io.RawIOBase):
    """What a socket receives, until the deadline and up to the limit."""

    def __init__(self, sock: socket.socket, bounds: Bounds) -> None:
        self._sock = sock
        self._bounds = bounds
        self._file = sock.makefile("rb", buffering=0)  # http.client may close the socket before its file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._bounds.left_s())
        count = self._file.readinto(buffer) or 0
        self._count += count
        if self._count > self._bounds.answer_bytes:
            raise TooLargeAnswerError(f"the answer is larger than {self._bounds.answer_bytes} bytes")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
