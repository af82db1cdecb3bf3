import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from infra.clouds.digitalocean import dead_man_switch
from infra.clouds.digitalocean.dead_man_switch import Instructions, is_due

PROGRAM = Path(dead_man_switch.__file__)
TOLD = Instructions("https://127.0.0.1:1", "token", "nb-one-a1-x1000", deadline=1000, ca=None)


@pytest.fixture
def deadline(tmp_path: Path) -> Path:
    path = tmp_path / "deadline"
    path.write_text("1000\n")
    return path


def test_a_machine_lives_until_its_deadline(deadline: Path) -> None:
    assert not is_due(deadline, TOLD, clock_s=999, awake_s=0, lifetime_s=500)
    assert is_due(deadline, TOLD, clock_s=1000, awake_s=0, lifetime_s=500)


def test_a_lease_that_was_extended_moves_the_deadline(deadline: Path) -> None:
    deadline.write_text("1600")

    assert not is_due(deadline, TOLD, clock_s=1100, awake_s=600, lifetime_s=500)
    assert is_due(deadline, TOLD, clock_s=1100, awake_s=1100, lifetime_s=500)


@pytest.mark.parametrize("content", ["", "soon", None])
def test_a_deadline_that_cannot_be_read_means_now(deadline: Path, content: str | None) -> None:
    deadline.unlink() if content is None else deadline.write_text(content)

    assert is_due(deadline, TOLD, clock_s=0, awake_s=0, lifetime_s=500)


def test_a_clock_that_is_set_back_does_not_move_the_deadline(deadline: Path) -> None:
    assert is_due(deadline, TOLD, clock_s=0, awake_s=501, lifetime_s=500)


class _Cloud(ThreadingHTTPServer):
    """Lists one machine with a GPU until it was deleted; the first delete fails."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.failures = 1
        self.oddity = ""  # of the first list
        self.is_deleted = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: _Cloud

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own name
        pass

    def do_GET(self) -> None:
        assert self.headers["Authorization"] == "Bearer token"
        oddity, self.server.oddity = self.server.oddity, ""
        if oddity == "foreign":
            self._answer(200, ["droplets"])
            return
        if oddity == "drips":
            self._drip()
            return
        machines = [{"id": 7, "name": "nb-one-a1-x1000"}, {"id": 8, "name": "somebody-elses"}]
        self._answer(200, {"droplets": machines if "type=gpus" in self.path else []})

    def do_DELETE(self) -> None:
        self.server.asked.append(self.path)
        if self.server.failures:
            self.server.failures -= 1
            self._answer(500, {"id": "server_error"})
            return
        self._answer(204, None)
        self.server.is_deleted.set()

    def _drip(self) -> None:
        """A byte now and then, for as long as anybody reads."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.05)

    def _answer(self, status: int, body: object) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[_Cloud]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = _Cloud()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _told(cloud: _Cloud, tmp_path: Path, deadline: int) -> dict[str, object]:
    ca = (tmp_path / "ca.pem").read_text()
    where = f"https://127.0.0.1:{cloud.server_port}"
    return {**TOLD.__dict__, "endpoint": where, "deadline": deadline, "ca": ca}


@contextmanager
def _running(cloud: _Cloud, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """The program on its own, past its deadline, with less patience."""
    program, text = tmp_path / "dead-man.py", PROGRAM.read_text()
    program.write_text(text.replace("AGAIN_S = 20.0", "AGAIN_S = 0.1").replace("ATTEMPT_S = 120 ", "ATTEMPT_S = 2 "))
    (tmp_path / "told.json").write_text(json.dumps(_told(cloud, tmp_path, int(time.time()) - 1)))
    (tmp_path / "deadline").write_text("0")
    argv = [sys.executable, "-I", str(program), str(tmp_path / "told.json"), str(tmp_path / "deadline")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def test_it_deletes_its_own_machine_and_no_other(cloud: _Cloud, tmp_path: Path) -> None:
    cloud.failures = 0
    told = Instructions(**_told(cloud, tmp_path, 1000))  # type: ignore[arg-type] # as they are read from JSON

    assert dead_man_switch.delete_once(told)

    assert cloud.asked == ["/v2/droplets/7"]


def test_a_delete_that_fails_is_not_a_success(cloud: _Cloud, tmp_path: Path) -> None:
    told = Instructions(**_told(cloud, tmp_path, 1000))  # type: ignore[arg-type] # as they are read from JSON

    assert not dead_man_switch.delete_once(told)


def test_an_unreachable_cloud_does_not_crash_it() -> None:
    assert not dead_man_switch.delete_once(TOLD)


@pytest.mark.parametrize("oddity", ["foreign", "drips"])
def test_no_answer_of_a_cloud_stops_the_program(cloud: _Cloud, tmp_path: Path, oddity: str) -> None:
    cloud.oddity = oddity

    with _running(cloud, tmp_path):
        is_deleted = cloud.is_deleted.wait(120)

    assert is_deleted


def test_the_program_runs_without_our_code_and_repeats_the_deletion(cloud: _Cloud, tmp_path: Path) -> None:
    with _running(cloud, tmp_path) as running:
        is_deleted = cloud.is_deleted.wait(60)
        running.kill()
        said = running.stdout.read() if running.stdout else ""

    assert is_deleted
    assert cloud.asked[:2] == ["/v2/droplets/7", "/v2/droplets/7"]
    assert "token" not in said
