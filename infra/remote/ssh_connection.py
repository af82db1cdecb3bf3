"""One SSH connection, by fabric: host key pinned, each step with a time limit, each failure one of our errors.

Fabric connects and uploads. This file alone imports paramiko, below fabric, for what fabric lacks:

- a command's output as bytes, as it arrives and up to a limit: `run` decodes and stores all of it, in threads of its
  own that outlast a connection which a time limit closes; a download is such a command, because `get` raises the error
  of a broken connection in a thread where nothing catches it
- one pinned host key, lines of known_hosts, and a connection that reads no configuration of the user
- keepalive, the time limit of unacknowledged data, and closing below a channel whose peer reads nothing
- the classes of its errors
"""

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fabric
from paramiko import SSHClient, SSHConfig, Transport
from paramiko.hostkeys import HostKeyEntry, HostKeys
from paramiko.ssh_exception import (
    AuthenticationException,
    BadHostKeyException,
    NoValidConnectionsError,
    SSHException,
)

from bench.errors import (
    HostError,
    HostKeyError,
    LoginRefusedError,
    LostConnectionError,
    RemoteCommandError,
    SilentHostError,
    UnreachableHostError,
)
from infra.remote.host import Access

SSH_PORT = 22
CONNECT_TIMEOUT_S = 15
KEEPALIVE_S = 10  # routers drop a connection that is silent for minutes; a missing reply closes the connection
UNANSWERED_MS = 45_000  # TCP closes a connection whose peer acknowledges nothing for so long
CHUNK = 1 << 16
MOST_OUTPUT_BYTES = 64 << 20  # of a command; a machine may send for ever
# What paramiko says of a login that a lost connection or a busy host left without an answer.
LOGIN_UNANSWERED = ("saw EOF", "timeout")
NO_STATUS = -1  # paramiko's value for a channel that was closed before its command ended

# Its threads log whole tracebacks of errors that we catch.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def known_host_key(file: Path, address: str, port: int, kinds: Sequence[str]) -> str | None:
    """Return the key of a host in a known_hosts file, of the first of these kinds that it has; None if it has none."""
    known = HostKeys(str(file)).lookup(known_name(address, port)) if file.is_file() else None
    found = [kind for kind in kinds if known is not None and kind in known]
    return f"{found[0]} {known[found[0]].get_base64()}" if known is not None and found else None


class LongOutputError(OSError):
    """A command sent more than it may."""


class SshConnection:
    """An open connection to one machine. Not for two threads at once."""

    def __init__(self, access: Access, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Connect; raises HostKeyError, LoginRefusedError or UnreachableHostError, also for a server that is silent."""
        self._access = access
        self._connection = _connection(access, connect_timeout_s)
        try:
            _open(self._connection, access, connect_timeout_s)
        except BaseException:
            self.close()
            raise
        transport = self.transport
        transport.set_keepalive(KEEPALIVE_S)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)

    @property
    def transport(self) -> Transport:
        """The transport that carries the channels."""
        transport = self._connection.transport
        if not isinstance(transport, Transport):
            raise LostConnectionError(f"{self._access} is not connected")
        return transport

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as this side knows."""
        return bool(self._connection.is_connected)

    def close(self) -> None:
        """Disconnect."""
        # The transport first: closing a channel sends a message, which blocks for ever where the peer reads nothing.
        self._connection.client.close()
        self._connection.close()

    def execute(
        self, command: str, stdin: bytes, each_chunk: Callable[[bytes], object], most_bytes: int = MOST_OUTPUT_BYTES
    ) -> bytes:
        """Run a command inside a step; `each_chunk` receives its output as it arrives, and its stderr is returned.

        More output than `most_bytes` ends the step with RemoteCommandError.
        """
        channel = self._connection.create_session()
        try:
            channel.exec_command(command)
            channel.sendall(stdin)
            channel.shutdown_write()
            for chunk in _chunks(channel.recv, most_bytes):
                each_chunk(chunk)
            err = b"".join(_chunks(channel.recv_stderr, MOST_OUTPUT_BYTES))
            if channel.recv_exit_status() == NO_STATUS:
                raise EOFError("it ended without an exit status")
            return err
        finally:
            channel.close()

    def put(self, source: Path, target: str) -> None:
        """Upload a file inside a step, into a file that exists and keeps its mode."""
        self._connection.put(str(source), target, preserve_mode=False)

    @contextmanager
    def step(self, what: str, timeout_s: float) -> Iterator[None]:
        """Limit the time of a step by closing the connection, since paramiko waits for ever in places.

        Raises SilentHostError where the time was over and LostConnectionError where the connection broke.
        """
        ran_out = threading.Event()

        def give_up() -> None:
            ran_out.set()
            self.close()

        timer = threading.Timer(timeout_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (SSHException, EOFError, OSError) as error:
            if not ran_out.is_set() and self._is_about_a_file(error):
                raise RemoteCommandError(f"{what} failed on {self._access}: {_said(error)}") from error
            self.close()
            raise self._named(what, timeout_s, error, is_silent=ran_out.is_set()) from error
        finally:
            timer.cancel()
        if ran_out.is_set():
            raise self._named(what, timeout_s, None, is_silent=True)

    def _is_about_a_file(self, error: BaseException) -> bool:
        """Whether the machine or this computer refused a file, while the connection is open."""
        is_broken = isinstance(error, (ConnectionError, TimeoutError)) or str(error) == "Socket is closed"
        return isinstance(error, OSError) and not is_broken and self.is_open

    def _named(self, what: str, timeout_s: float, error: BaseException | None, *, is_silent: bool) -> HostError:
        if is_silent:
            return SilentHostError(f"{self._access} did not finish {what} within {timeout_s:g} s")
        return LostConnectionError(f"the connection to {self._access} broke during {what}: {_said(error)}")


def _chunks(receive: Callable[[int], bytes], most_bytes: int) -> Iterator[bytes]:
    """What one stream of a command sends, up to its end."""
    count = 0
    while chunk := receive(CHUNK):
        count += len(chunk)
        if count > most_bytes:
            raise LongOutputError(f"it sent more than {most_bytes:,} bytes")
        yield chunk


def _connection(access: Access, connect_timeout_s: float) -> fabric.Connection:
    """A connection without the user's SSH configuration, agent and keys."""
    config = fabric.Config(ssh_config=SSHConfig(), lazy=True)
    connection = fabric.Connection(
        access.address,
        user=access.user,
        port=access.port,
        config=config,
        connect_timeout=max(int(connect_timeout_s), 1),
        connect_kwargs={
            "key_filename": [str(access.private_key)],
            "allow_agent": False,
            "look_for_keys": False,
            "banner_timeout": connect_timeout_s,
            "auth_timeout": connect_timeout_s,
            "channel_timeout": connect_timeout_s,
        },
    )
    _pin(connection.client, access)
    return connection


def _pin(client: SSHClient, access: Access) -> None:
    """Accept this host key and no other; a server with another one is refused before anything is sent."""
    entry = HostKeyEntry.from_line(f"{known_name(access.address, access.port)} {access.host_public_key}")
    if entry is None or entry.key is None:
        raise HostKeyError(f"the known host key of {access} cannot be read: {access.host_public_key[:60]!r}")
    client.get_host_keys().add(known_name(access.address, access.port), entry.key.get_name(), entry.key)


def known_name(address: str, port: int) -> str:
    """The name of a host in a known_hosts file."""
    return address if port == SSH_PORT else f"[{address}]:{port}"


def _open(connection: fabric.Connection, access: Access, timeout_s: float) -> None:
    try:
        connection.open()
    except BadHostKeyException as error:
        raise HostKeyError(
            f"host key mismatch for {access}: it has {error.key.fingerprint}, and {error.expected_key.fingerprint} is "
            "known for it; nothing was sent. Release the machine, or check which machine answers there before you "
            "change the known key"
        ) from error
    except AuthenticationException as error:
        if any(unanswered in str(error) for unanswered in LOGIN_UNANSWERED):
            raise UnreachableHostError(f"{access} did not answer the login: {error}") from error
        raise LoginRefusedError(
            f"{access} refused the key {access.private_key}: add its public part to ~/.ssh/authorized_keys there"
        ) from error
    except NoValidConnectionsError as error:
        raise UnreachableHostError(f"{access} refuses connections, or does not exist") from error
    except (SSHException, EOFError, OSError) as error:
        raise UnreachableHostError(f"{access} cannot be reached within {timeout_s:g} s: {_said(error)}") from error


def _said(error: BaseException | None) -> str:
    return str(error) or type(error).__name__
