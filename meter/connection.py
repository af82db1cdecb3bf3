"""Opens TCP connections: kernel timestamps on, TCP_NODELAY set, non-blocking once connected."""

import errno
import os
import socket
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

from meter.clock import SO_TIMESTAMPNS
from meter.errors import OutsideWorldError

READ_BYTES = 16_384  # one read; what is left is read in the next turn
CAN_STAMP = sys.platform == "linux"
ANCILLARY_BYTES = 64  # one stamp takes 32
FIRST_CONNECT_S = 10.0  # longest wait for a server that should be up


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server listens, resolved once, before the clock starts."""

    url: str
    family: int
    address: tuple[object, ...]
    is_stamped: bool  # whether the kernel is asked for its own times
    is_fresh: bool = False  # whether each request gets a connection of its own


def resolve(url: str, *, wants_stamps: bool, is_fresh: bool = False) -> Endpoint:
    """Resolve the server's address; raises OutsideWorldError if its name is unknown."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OutsideWorldError(f"The server {url} cannot be found: {error}.") from error
    family, _kind, _protocol, _name, address = found[0]
    return Endpoint(url, family, address, is_stamped=wants_stamps and CAN_STAMP, is_fresh=is_fresh)


def _new_socket(endpoint: Endpoint) -> socket.socket:
    sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if endpoint.is_stamped:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


def open_waiting(endpoint: Endpoint) -> socket.socket:
    """Connect and wait for it, before the clock starts; raises OutsideWorldError if the server does not answer."""
    sock = None
    try:
        sock = _new_socket(endpoint)
        sock.settimeout(FIRST_CONNECT_S)
        sock.connect(endpoint.address)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise OutsideWorldError(why_not(endpoint, error)) from error
    sock.setblocking(False)
    return sock


def why_not(endpoint: Endpoint, error: OSError) -> str:
    """Explain why a connection could not be opened, and what to do."""
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"No local port is free for a connection to {endpoint.url}: wait until old connections close, or use fewer."
        )
    return f"The server {endpoint.url} does not answer: {error}. Is it running there?"


def open_starting(endpoint: Endpoint) -> socket.socket:
    """Begin to connect and return at once; raises OSError when it has failed already."""
    sock = _new_socket(endpoint)
    sock.setblocking(False)
    code = sock.connect_ex(endpoint.address)
    if code not in {0, errno.EINPROGRESS}:
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock
