"""One TCP connection: opened with kernel stamps on, without delay, never blocking once it stands."""

import errno
import os
import socket
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

from meter.clock import SO_TIMESTAMPNS
from meter.errors import OutsideWorldError
from meter.exchange import Exchange

READ_BYTES = 16_384  # one read; what is left is read in the next turn
ANCILLARY_BYTES = 64 if sys.platform == "linux" else 0  # one stamp takes 32
FIRST_CONNECT_S = 10.0  # longest wait for a server that should be up


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server listens, resolved once, before the clock starts."""

    url: str
    family: int
    address: tuple[object, ...]


@dataclass(slots=True, eq=False)
class Connection:
    """A socket, what it carries now, and how much it has carried."""

    number: int
    socket: socket.socket
    fd: int
    opened_ns: int
    is_connecting: bool
    uses: int = 0  # requests begun on it
    exchange: Exchange | None = None
    unsent: memoryview | None = None


def resolve(url: str) -> Endpoint:
    """Look the server's address up; raises OutsideWorldError when its name is not known."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OutsideWorldError(f"The server {url} cannot be found: {error}.") from error
    family, _kind, _protocol, _name, address = found[0]
    return Endpoint(url, family, address)


def _new_socket(endpoint: Endpoint) -> socket.socket:
    sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if ANCILLARY_BYTES:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


def open_waiting(endpoint: Endpoint) -> socket.socket:
    """Connect and wait for it, before the clock starts; raises OutsideWorldError when nobody answers."""
    sock = None
    try:
        sock = _new_socket(endpoint)
        sock.settimeout(FIRST_CONNECT_S)
        sock.connect(endpoint.address)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise OutsideWorldError(f"The server {endpoint.url} does not answer: {error}. Is it running there?") from error
    sock.setblocking(False)
    return sock


def open_starting(endpoint: Endpoint) -> socket.socket:
    """Begin to connect and return at once; raises OSError when it has failed already."""
    sock = _new_socket(endpoint)
    sock.setblocking(False)
    code = sock.connect_ex(endpoint.address)
    if code not in {0, errno.EINPROGRESS}:
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock


def make_room(connections: int) -> None:
    """Raise the soft limit of open files as far as it goes; raises OutsideWorldError when it is too low."""
    try:
        import resource  # noqa: PLC0415 -- not on every system
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 64  # our own files, and room for connections being replaced
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise OutsideWorldError(
            f"{connections} connections need {wanted} open files; this host's hard limit is {hard} (ulimit -Hn)."
        )
