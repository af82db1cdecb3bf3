"""One connection to a machine, by fabric: its host key pinned, every step bounded, every failure named."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import fabric
from paramiko import SSHClient, SSHConfig, Transport
from paramiko.hostkeys import HostKeyEntry
from paramiko.sftp_client import SFTPClient
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

CONNECT_TIMEOUT_S = 15
KEEPALIVE_S = 10  # routers forget what is silent for minutes; an answer that fails to come ends the connection
UNANSWERED_MS = 45_000  # TCP gives up on a peer that acknowledges nothing for so long
CHUNK = 1 << 16
NO_STATUS = -1  # paramiko's word for a channel that was closed before its command ended

# Its threads log whole tracebacks of what we catch and name.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class SshConnection:
    """An open connection to one machine. Not for two threads at once."""

    def __init__(self, access: Access, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Connect; raises HostKeyError, LoginRefusedError or UnreachableHostError, the last also for a mute server."""
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
        """The connection below the channels."""
        transport = self._connection.transport
        if not isinstance(transport, Transport):
            raise LostConnectionError(f"{self._access} is not connected")
        return transport

    @property
    def is_open(self) -> bool:
        """Whether the connection stands, as far as is known here."""
        return bool(self._connection.is_connected)

    def close(self) -> None:
        """Hang up."""
        # The transport first: closing a channel says goodbye, which waits for ever where the other side reads nothing.
        self._connection.client.close()
        self._connection.close()

    def execute(self, command: str, stdin: bytes, each_chunk: Callable[[bytes], None]) -> bytes:
        """Run a command inside a step; its output is given chunk by chunk as it comes, and its stderr returned."""
        channel = self._connection.create_session()
        try:
            channel.exec_command(command)
            channel.sendall(stdin)
            channel.shutdown_write()
            while chunk := channel.recv(CHUNK):
                each_chunk(chunk)
            err = b"".join(iter(lambda: channel.recv_stderr(CHUNK), b""))
            if channel.recv_exit_status() == NO_STATUS:
                raise EOFError("it ended without an exit status")
            return err
        finally:
            channel.close()

    def files(self) -> SFTPClient:
        """The machine's files, for use inside a step."""
        return self._connection.sftp()

    @contextmanager
    def step(self, what: str, timeout_s: float) -> Iterator[None]:
        """Bound a step: paramiko waits for ever in places, so that hanging up is what ends it.

        Raises SilentHostError where the time ran out and LostConnectionError where the connection broke.
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
        """Whether the machine or this computer refused a file, while the connection stands."""
        is_broken = isinstance(error, (ConnectionError, TimeoutError)) or str(error) == "Socket is closed"
        return isinstance(error, OSError) and not is_broken and self.is_open

    def _named(self, what: str, timeout_s: float, error: BaseException | None, *, is_silent: bool) -> HostError:
        if is_silent:
            return SilentHostError(f"{self._access} said nothing more within {timeout_s:g} s of {what}")
        return LostConnectionError(f"the connection to {self._access} broke during {what}: {_said(error)}")


def _connection(access: Access, connect_timeout_s: float) -> fabric.Connection:
    """A connection that reads no configuration of the user's, no agent, and no key but ours."""
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
    """Let the client know this host key and no other; a server with any other is refused before anything is sent."""
    name = access.address if access.port == 22 else f"[{access.address}]:{access.port}"  # noqa: PLR2004
    entry = HostKeyEntry.from_line(f"{name} {access.host_public_key}")
    if entry is None or entry.key is None:
        raise HostKeyError(f"the host key that is known for {access} cannot be read: {access.host_public_key[:60]!r}")
    client.get_host_keys().add(name, entry.key.get_name(), entry.key)


def _open(connection: fabric.Connection, access: Access, timeout_s: float) -> None:
    try:
        connection.open()
    except BadHostKeyException as error:
        raise HostKeyError(
            f"{access} is not the machine we know: it shows the host key {error.key.fingerprint}, "
            f"and {error.expected_key.fingerprint} is known for it; nothing was sent to it. Release it, or find out "
            "who answers there before you change the known key"
        ) from error
    except AuthenticationException as error:
        raise LoginRefusedError(
            f"{access} does not let the key {access.private_key} in; was its public part put on the machine?"
        ) from error
    except NoValidConnectionsError as error:
        raise UnreachableHostError(f"{access} refuses connections, or is not there") from error
    except (SSHException, EOFError, OSError) as error:
        raise UnreachableHostError(f"{access} cannot be reached within {timeout_s:g} s: {_said(error)}") from error


def _said(error: BaseException | None) -> str:
    return str(error) or type(error).__name__
