"""A server that keeps to no interface: it answers each request with the bytes of a script, at its own pace."""

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

PAUSE_S = 0.2  # between two drops, well below any timeout of a client
Script = Callable[[bytes], Iterable[bytes]]  # from the request to the pieces of the answer
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@contextmanager
def strange_server(script: Script, pause_s: float = 0.0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that sends the pieces of this script, with a pause before each."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hold(accepted: socket.socket) -> None:
            with (
                accepted,
                suppress(OSError),
                tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection,
            ):
                for piece in script(whole_request(connection)):
                    if is_over.wait(pause_s):
                        return
                    connection.sendall(piece)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _peer = listener.accept()
                    threading.Thread(target=hold, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over.set()
            listener.shutdown(socket.SHUT_RDWR)


def whole_request(connection: socket.socket) -> bytes:
    """A request with its body, which may come in a packet of its own; what came of it where the client is gone."""
    request = b""
    while piece := connection.recv(1 << 16):
        request += piece
        head, end, body = request.partition(b"\r\n\r\n")
        length = CONTENT_LENGTH.search(head)
        if end and len(body) >= int(length[1] if length else 0):
            break
    return request


def whole(body: bytes, status: int = 200, kind: str = "application/json") -> bytes:
    """A complete answer."""
    head = (
        f"HTTP/1.1 {status} Found\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def dropped(answer: bytes) -> list[bytes]:
    """An answer byte by byte."""
    return [bytes([one]) for one in answer]


def forwarded(request: bytes, server: tuple[str, int]) -> Iterator[bytes]:
    """What another server answers to a request."""
    with socket.create_connection(server) as connection:
        connection.sendall(request.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n", 1))
        while piece := connection.recv(1 << 16):
            yield piece
