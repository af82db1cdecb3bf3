"""Opens TCP connections: kernel timestamps on, TCP_NODELAY set, non-blocking once connected; with TLS on https."""

import errno
import os
import socket
import ssl
import sys
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urlsplit

from meter.clock import SO_TIMESTAMPNS
from meter.errors import OutsideWorldError
from meter.tls import Tls, client_context, explain

READ_BYTES = 16_384  # one read; what is left is read in the next turn
CAN_STAMP = sys.platform == "linux"
ANCILLARY_BYTES = 64  # one stamp takes 32
FIRST_CONNECT_S = 10.0  # longest wait for a server that should be up
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """One address behind the server's name."""

    family: int
    address: tuple[object, ...]

    def __str__(self) -> str:
        """Host and port, an IPv6 host in brackets."""
        host, port = self.address[:2]
        return f"[{host}]:{port}" if self.family == socket.AF_INET6 else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server listens, resolved once, before the clock starts; connections go to its addresses in turn."""

    url: str
    addresses: tuple[Address, ...]
    is_stamped: bool  # whether the kernel adds its own times
    is_fresh: bool = False  # whether each request gets a connection of its own
    context: ssl.SSLContext | None = None  # None: no TLS
    left_out: tuple[tuple[str, str], ...] = ()  # each address that does not answer, and why

    @property
    def host(self) -> str:
        """The server's name, which its certificate must have."""
        return urlsplit(self.url).hostname or ""

    def address(self, number: int) -> Address:
        """The address of the connection of this number."""
        return self.addresses[number % len(self.addresses)]


def port_of(parts: SplitResult) -> int:
    """The port of a URL, named or by its scheme."""
    return parts.port or PORTS[parts.scheme]


def resolve(url: str, *, wants_stamps: bool, is_fresh: bool = False, ca_file: str | None = None) -> Endpoint:
    """Resolve the server's addresses; raises OutsideWorldError if its name is unknown."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, port_of(parts), type=socket.SOCK_STREAM)
    except OSError as error:
        raise OutsideWorldError(f"The server {url} cannot be found: {error}.") from error
    addresses = dict.fromkeys(Address(family, address) for family, _kind, _protocol, _name, address in found)
    context = client_context(ca_file) if parts.scheme == "https" else None
    return Endpoint(url, tuple(addresses), wants_stamps and CAN_STAMP, is_fresh, context)


def keep_answering(endpoint: Endpoint) -> Endpoint:
    """Leave out the addresses that take no connection, if there are several; OutsideWorldError if none takes one."""
    if len(endpoint.addresses) == 1:
        return endpoint
    good, left_out = [], []
    for number, address in enumerate(endpoint.addresses):
        try:
            sock, _tls = open_waiting(endpoint, number)
        except OutsideWorldError as error:
            left_out.append((str(address), str(error)))
        else:
            sock.close()
            good.append(address)
    if not good:
        raise OutsideWorldError(left_out[0][1])
    return replace(endpoint, addresses=tuple(good), left_out=tuple(left_out))


def _new_socket(endpoint: Endpoint, number: int) -> socket.socket:
    sock = socket.socket(endpoint.address(number).family, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if endpoint.is_stamped:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


def new_tls(endpoint: Endpoint) -> Tls | None:
    """The TLS of one more connection; None where there is none."""
    return None if endpoint.context is None else Tls(endpoint.context, endpoint.host)


def open_waiting(endpoint: Endpoint, number: int = 0) -> tuple[socket.socket, Tls | None]:
    """Connect and wait for it, before the clock starts; raises OutsideWorldError if the server does not answer."""
    sock, tls = None, new_tls(endpoint)
    try:
        sock = _new_socket(endpoint, number)
        sock.settimeout(FIRST_CONNECT_S)
        sock.connect(endpoint.address(number).address)
        if tls is not None:
            tls.shake(sock)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise OutsideWorldError(why_not(endpoint, error)) from error
    sock.setblocking(False)
    return sock, tls


def why_not(endpoint: Endpoint, error: OSError) -> str:
    """Explain why a connection could not be opened, and what to do."""
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"No local port is free for a connection to {endpoint.url}: wait until old connections close, or use fewer."
        )
    if isinstance(error, ssl.SSLError):
        return f"No TLS connection to {endpoint.url}: {explain(error, endpoint.host)}."
    return f"The server {endpoint.url} does not answer: {error}. Is it running there?"


def open_starting(endpoint: Endpoint, number: int = 0) -> socket.socket:
    """Begin to connect and return at once; raises OSError when it has failed already."""
    sock = _new_socket(endpoint, number)
    sock.setblocking(False)
    code = sock.connect_ex(endpoint.address(number).address)
    if code not in {0, errno.EINPROGRESS}:
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock
