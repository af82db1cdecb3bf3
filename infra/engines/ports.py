"""TCP ports on this host for a server to listen on."""

import socket

import psutil

from bench.errors import PortInUseError


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_free(port: int) -> None:
    """Raise PortInUseError, with the process that listens there, if a port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortInUseError(
                f"port {port} on this computer is in use{_listener(port)}: stop it, or set NIGHTBENCH_ENGINE_PORT"
            ) from error


def _listener(port: int) -> str:
    for process in psutil.process_iter(["pid", "name"]):
        try:
            listening = [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue
        if any(connection.laddr.port == port for connection in listening):
            return f" by {process.info['name']} (pid {process.info['pid']})"
    return ""
