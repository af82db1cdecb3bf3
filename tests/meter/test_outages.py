"""A server that closes each connection and is away for a moment: what falls due then is sent or fails."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.meter.conftest import RunMeter

AWAY_S = 0.45  # less than the pause before a turn, whose connection is opened 0.1 s early


class _Answer(BaseHTTPRequestHandler):
    """Two tokens, and the end of the connection."""

    server: "_Server"

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(json.dumps({"data": [{"id": "small"}]}), "application/json")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        parts = [{"choices": [{"text": "x", "token_ids": [1], "finish_reason": end}]} for end in (None, "length")]
        counts = {"choices": [], "usage": {"prompt_tokens": 16, "completion_tokens": 2}}
        body = "".join(f"data: {json.dumps(part)}\n\n" for part in [*parts, counts]) + "data: [DONE]\n\n"
        self._send(body, "text/event-stream")
        self.server.posts += 1

    def _send(self, body: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


class _Server(HTTPServer):
    posts = 0
    timeout = 0.05


@pytest.fixture
def briefly_away() -> Iterator[str]:
    """The URL of such a server: it refuses connections for a while after its first answer."""
    first, is_over = _Server(("127.0.0.1", 0), _Answer), threading.Event()
    port = first.server_port

    def serve() -> None:
        while not first.posts:
            first.handle_request()
        first.server_close()
        time.sleep(AWAY_S)
        with _Server(("127.0.0.1", port), _Answer) as again:
            while not is_over.is_set():
                again.handle_request()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{port}"
    is_over.set()
    thread.join()


def test_a_turn_is_sent_though_the_connection_that_was_opened_early_was_refused(
    briefly_away: str, run_meter: RunMeter
) -> None:
    prompts = {"kind": "multi-turn", "input_tokens": 16, "token_low": 264, "token_high": 10240, "seed": 5}

    report = run_meter(
        briefly_away,
        load={"kind": "sessions", "concurrency": 1},
        prompts=prompts | {"turns": 4, "pause_s": 0.5},
        output_tokens=2,
        request_count=4,
        timeout_s=2.0,
    )

    assert report.outcomes == ["ok"] * 4
