"""Prefect's own processes for tests: a server, which all workers of a test run share, and whatever else stays."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx2
import psutil

from infra.no_telemetry import QUIET
from infra.processes.file_lock import exclusive_lock
from infra.reporting import silent

PATIENCE_S = 480  # a computer that is busy with ten processes deploys within 300
NOT_OURS = ("PREFECT_", "NIGHTBENCH_")
DATABASE = "prefect.db"  # in the home of a server
EMPTY = "empty.db"  # beside the database of the shared server


@dataclass(frozen=True)
class Service:
    """A process that stays, and whatever it starts; all of them are known by the home of Prefect they were given."""

    process: "subprocess.Popen[bytes]"
    home: Path
    log: Path

    def living(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                is_ours = process.environ().get("PREFECT_HOME") == str(self.home)
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (OSError, psutil.Error):
                continue
        return found

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for something that this service brings about; its log is shown where it does not."""
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until, f"{what}: not within {PATIENCE_S} s\n{self.last_words()}"
            time.sleep(0.5)

    def last_words(self) -> str:
        return self.log.read_text()[-4000:]

    def stop(self) -> list[str]:
        """Ask it to end and return what it left behind, which is killed.

        Prefect turns our signal into a KeyboardInterrupt, which can be lost in a callback; a worker
        that did not hear it is ended as an operator would end it.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=PATIENCE_S)
        left = self.living()
        killed = [f"{process.pid} {process.name()}" for process in left]
        for process in left:
            process.kill()
        return killed


def environment(home: Path, url: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    return {**ours, **QUIET, "PREFECT_HOME": str(home), "PREFECT_API_URL": url}


def start(home: Path, argv: list[str], env: dict[str, str]) -> Service:
    log = home / "log.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *argv],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=home,
            start_new_session=True,
        )
    return Service(process, home, log)


@cache
def client() -> httpx2.Client:
    """One for all: each reads this computer's certificates when it is made."""
    return httpx2.Client(timeout=60)  # a server beside other programs may need long for an answer


def is_healthy(url: str) -> bool:
    try:
        return client().get(f"{url}/health").is_success
    except httpx2.HTTPError:
        return False


def refuses_others(url: str, login: str | None = None) -> None:
    """A server asks everybody for its login; and it lets no page of another origin in, nor a login without a token."""
    foreign = {"Origin": "http://elsewhere.example"}
    answers = [
        client().get(f"{url}/admin/settings", headers=foreign),
        client().post(f"{url}/flows/", json={"name": "foreign"}, headers=foreign),
    ]
    assert {answer.status_code for answer in answers} <= {401, 403}
    assert not any("access-control-allow-origin" in answer.headers for answer in answers)
    if login is not None:
        known = httpx2.BasicAuth(*login.split(":", 1))
        assert client().get(f"{url}/admin/settings", auth=known).is_success
        forged = client().post(f"{url}/flows/", json={"name": "foreign"}, headers=foreign, auth=known)
        assert (forged.status_code, forged.json()["detail"]) == (403, "Missing CSRF token.")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start_server(home: Path, port: int | None = None) -> tuple[Service, str]:
    """Start a server without services, which schedules nothing, and without pages; return its address."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}/api"
    where = {"PREFECT_SERVER_API_HOST": "127.0.0.1", "PREFECT_SERVER_API_PORT": str(port)}
    quiet = {"PREFECT_SERVER_UI_ENABLED": "false"}
    return start(home, ["server", "start", "--no-services"], {**environment(home, url), **where, **quiet}), url


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """The address of a server of one's own."""
    server, url = start_server(home)
    try:
        server.wait_until(lambda: server.process.poll() is not None or is_healthy(url), "the server is healthy")
        yield url
    finally:
        killed = server.stop()
    assert killed == []


class SharedServer:
    """The server of a test run with several workers: the process that starts them starts it, too, and stops it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._service: Service | None = None

    def start(self) -> None:
        """Start it, where it is not started yet; nothing waits for it here."""
        if self._service is None:
            self.home.mkdir()
            self._service, url = start_server(self.home)
            unfinished = self.home / "address.tmp"
            unfinished.write_text(url)
            unfinished.rename(self.home / "address")

    def stop(self) -> None:
        """Stop it, where it was started."""
        if self._service is not None:
            killed = self._service.stop()
            assert killed == []


def shared_address(home: Path) -> str:
    """Wait in a worker for the shared server, and return its address.

    Whoever comes first keeps a copy of its empty database: to make one takes longer than to start a server.
    """
    until, address = time.monotonic() + PATIENCE_S, home / "address"
    while not (address.exists() and is_healthy(address.read_text())):
        assert time.monotonic() < until, f"no Prefect server within {PATIENCE_S} s, see {home}"
        time.sleep(0.5)
    with exclusive_lock(home / "empty.lock", silent, "copying the database"):
        if not (home / EMPTY).exists():
            unfinished = home / f"{EMPTY}.tmp"
            copy_database(home / DATABASE, unfinished)
            unfinished.rename(home / EMPTY)
    return address.read_text()


def migrated(home: Path, shared: Path | None, database: str = DATABASE) -> Path:
    """Make a home of Prefect's, with a copy of the shared server's empty database where there is such a server."""
    home.mkdir(parents=True, exist_ok=True)
    if shared is not None:
        shared_address(shared)
        shutil.copy(shared / EMPTY, home / database)
    return home


def copy_database(origin: Path, to: Path) -> None:
    """Copy a database, also one that is in use."""
    with closing(sqlite3.connect(origin)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
