"""HTTP/1.1 on loopback, with TLS where asked: bytes in, bytes out, and the ways in which an answer goes missing."""

import select
import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import trustme

from tests.emulators.digitalocean.replies import Reply, Request

LONGEST_SILENCE_S = 600.0


class Server(ThreadingHTTPServer):
    """One thread a connection; `answer` is called from many threads at once."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Callable[[Request], Reply], context: ssl.SSLContext | None) -> None:
        self.answer = answer
        self.context = context
        super().__init__(("127.0.0.1", 0), Handler)

    def start(self) -> None:
        """Serve in the background."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Serve no more; connections that are open come to nothing."""
        self.shutdown()
        self.server_close()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context is None:
            return connection, address
        # The handshake is left to the connection's own thread: a client that dawdles blocks nobody.
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what this server is for."""


class Handler(BaseHTTPRequestHandler):
    """Reads one request after another from a connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def _serve(self) -> None:
        asked = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        request = Request(
            self.command,
            unquote(asked.path).rstrip("/"),
            dict(parse_qsl(asked.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
        )
        if len(request.raw) < length:  # the client was killed while it sent
            self.close_connection = True
            return
        self._deliver(self.server.answer(request))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815 - the base class looks for these names

    def _deliver(self, reply: Reply) -> None:
        if reply.delivery in {"close", "silence"}:
            if reply.delivery == "silence":
                self._wait_for_the_end()
            self.close_connection = True
            return
        content = reply.content()
        sent = {"truncated": content[: len(content) // 2], "empty": b"", "garbage": b"<html>Bad Gateway</html>"}
        content = sent.get(reply.delivery, content)
        self.send_response_only(reply.status)  # the date is the emulated cloud's
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _wait_for_the_end(self) -> None:
        """Say nothing until the client gives up."""
        select.select([self.connection], [], [], LONGEST_SILENCE_S)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """The emulator keeps a log of its own."""


def tls(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A context for this address and the file of the authority that vouches for it."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    return context, ca
