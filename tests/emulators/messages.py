"""What takes messages: a webhook, which may fail or hang, and a mail server, which may refuse."""

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Webhook:
    """Keeps the JSON of each POST, and the path of each GET."""

    def __init__(self) -> None:
        self.taken: list[dict[str, str]] = []
        self.called: list[str] = []
        self.begun = 0  # messages that arrived, also those that were not taken
        self.status = 200
        self.is_hanging = False
        self.is_over = threading.Event()
        self.url = ""

    @property
    def titles(self) -> list[str]:
        return [one["title"] for one in self.taken]


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook of this computer; its `url` is that of plain HTTP."""
    state = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.begun += 1
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if state.is_hanging:
                state.is_over.wait()
            if state.status == 200:
                state.taken.append(json.loads(body))
            self._answer()

        def do_GET(self) -> None:
            state.called.append(self.path)
            self._answer()

        def _answer(self) -> None:
            self.send_response(state.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        state.url = f"127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            state.is_over.set()
            server.shutdown()


class Mailbox:
    """Keeps the text of each mail."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.refuses = False
        self.refused = b""  # a recipient that it does not know
        self.taken_by: list[str] = []  # the recipient of each mail
        self.address = ""


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """A mail server that speaks as much of RFC 5321 as a client of one mail needs."""
    state = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("554 not today" if state.refuses else "220 ready")
            recipient = ""
            for line in self.rfile:
                verb = re.split(rb"[ :\r]", line.upper())[0]
                if verb == b"RCPT":
                    if state.refused and state.refused in line:
                        self._say("550 no such user")
                        continue
                    recipient = line.decode().split("<")[1].split(">")[0]
                if verb == b"DATA":
                    self._say("354 go ahead")
                    text = b"".join(iter(self.rfile.readline, b".\r\n"))
                    state.mails.append(text.decode())
                    state.taken_by.append(recipient)
                self._say("221 bye" if verb == b"QUIT" else "250 ok")
                if verb == b"QUIT":
                    return

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        state.address = f"127.0.0.1:{server.server_address[1]}"
        try:
            yield state
        finally:
            server.shutdown()
