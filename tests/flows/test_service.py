"""The service without Prefect: its units, ports and login, its web server of pages, and what `down` refuses."""

import base64
import hashlib
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest

from bench.errors import PortInUseError, ServerStartError, UsageError
from flows.service import keepers, postgres
from flows.service.busy_database import why_postgresql
from flows.service.keepers import RUN, Detached, Systemd, end_left_worker, environment_file, keeper_of, unit_file
from flows.service.pages import policy, serve
from flows.service.parts import MARK, Part, Service
from flows.service.start import _start as start_part
from flows.service.start import down, is_up, up
from infra.processes import detached
from infra.processes.environment import ChildEnvironment
from infra.processes.liveness import liveness_lock
from infra.reporting import silent
from infra.settings import Settings
from tests.flows.serving import free_port
from tests.warehouse.folders import whole_night
from warehouse.load import load_night
from warehouse.report.page import write_report

HOSTILE = 'a secret with a "quote", a $dollar, 100% and a \\'
TRACE = "runs/night/profile-0123456789abcdef/0/rank0.pt.trace.json.gz"


class Running(Detached):
    """A keeper all of whose parts run."""

    def is_running(self, part: Part) -> bool:
        """Whether the part runs."""
        del part
        return True


@pytest.fixture
def service(tmp_path: Path) -> Service:
    settings = Settings(data=tmp_path / "data 100%", service_port=free_port(), pages_port=free_port())
    return Service(settings)


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "site").mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "site" / "index.html").write_text("start")
    (tmp_path / "reports" / "n.html").write_text("night")
    (tmp_path / "ledger.sqlite").write_text("private")
    (tmp_path / TRACE).parent.mkdir(parents=True)
    (tmp_path / TRACE).write_text("trace")
    (tmp_path / TRACE).with_name("record.json").write_text("private")
    server = serve(tmp_path, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_login_is_made_once_and_only_its_user_may_read_it(service: Service) -> None:
    assert service.login() == service.login()

    assert service.login().startswith("nightbench:")
    assert stat.S_IMODE((service.folder / "login").stat().st_mode) == 0o600
    assert stat.S_IMODE(service.folder.stat().st_mode) == 0o700


def test_the_server_gets_no_credential_of_a_night_and_the_worker_gets_all(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_HOSTILE_ACCESS_KEY", HOSTILE)

    server, pages, worker = service.parts()

    assert worker.environment["AWS_HOSTILE_ACCESS_KEY"] == HOSTILE
    assert HOSTILE not in {*server.environment.values(), *pages.environment.values()}


@pytest.mark.parametrize("number", range(3))
def test_a_unit_is_one_that_systemd_accepts(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on PATH")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    part = service.parts()[number]
    unit, environment = tmp_path / f"nightbench-{part.name}.service", service.folder / f"{part.name}.env"
    environment.write_text(environment_file(part))
    unit.write_text(unit_file(part, environment, "nightbench-server-x.service"))

    checked = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )

    assert [line for line in checked.stderr.splitlines() if unit.name in line] == []
    assert "KillMode=process" in unit.read_text()


def test_each_data_folder_has_units_of_its_own(tmp_path: Path) -> None:
    part = Service(Settings(data=tmp_path)).parts()[0]

    logs = {Systemd(tmp_path / name, tmp_path).log(part) for name in ("a", "b")}

    assert len(logs) == 2
    assert all("nightbench-server-" in log for log in logs)


def test_a_link_to_a_data_folder_names_the_service_of_that_folder(tmp_path: Path) -> None:
    data, link = tmp_path / "data", tmp_path / "link"
    data.mkdir()
    link.symlink_to(data)

    of_folder, by_link = (Service(Settings(data=one)) for one in (data, link))

    part = of_folder.parts()[0]
    assert {Systemd(one.folder, tmp_path).log(part) for one in (of_folder, by_link)} == {
        Systemd(data.resolve() / "service", tmp_path).log(part)
    }
    assert by_link.data == of_folder.data  # the mark by which its processes are found


def test_postgresql_is_proposed_where_the_database_is_locked_often(service: Service) -> None:
    service.make_folder()
    keeper = Detached(service.folder)
    (service.folder / "server.pid").write_text("1 1\n")
    log = keeper.log_file(service.parts()[0])

    log.write_text(20 * "sqlite3.OperationalError: database is locked\n")
    assert why_postgresql(service, keeper) is None
    log.write_text(21 * "sqlite3.OperationalError: database is locked\n")
    assert "was locked 21 times per hour: run `nightbench down` and" in str(why_postgresql(service, keeper))
    os.utime(service.folder / "server.pid", (0, 0))  # it was started long ago
    assert why_postgresql(service, keeper) is None


def test_the_environment_of_a_unit_is_read_back_as_it_was(service: Service) -> None:
    part = replace(service.parts()[0], environment=ChildEnvironment({"A": HOSTILE, "B": "two\nlines", "C": ""}))

    # systemd reads such a file as a shell reads double quotes, but for `$` and a backquote, which it leaves alone.
    lines = environment_file(part).splitlines()

    assert lines == ['A="a secret with a \\"quote\\", a $dollar, 100% and a \\\\"', 'C=""']


def test_a_setting_on_several_lines_reaches_a_unit_on_one(service: Service) -> None:
    urls = ChildEnvironment({"NIGHTBENCH_NOTIFY_URLS": "json://a\njson://b", "OTHER": "1\n2"})

    assert environment_file(replace(service.parts()[0], environment=urls)) == (
        'NIGHTBENCH_NOTIFY_URLS="json://a json://b"\n'
    )


def test_a_relative_path_of_a_setting_means_the_same_to_the_worker(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTBENCH_CACHE", "cache")

    assert service.parts()[-1].environment["NIGHTBENCH_CACHE"] == str(tmp_path / "cache")


def test_one_port_for_two_parts_is_refused(service: Service) -> None:
    one = service.settings.model_copy(update={"pages_port": service.settings.service_port})

    with pytest.raises(UsageError, match="NIGHTBENCH_SERVICE_PORT and NIGHTBENCH_PAGES_PORT are both"):
        up(Service(one), silent)


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the bus that a systemctl on PATH needs, in a shell that does not name it."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "systemctl"
    program.write_text('#!/bin/sh\n[ -n "$XDG_RUNTIME_DIR" ] && echo running\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(keepers, "RUNTIMES", tmp_path / "run")
    return tmp_path / "run" / str(os.getuid())


def test_a_shell_without_a_way_to_systemd_looks_where_it_usually_is(service: Service, systemctl: Path) -> None:
    assert isinstance(keeper_of(service), Detached)

    systemctl.mkdir(parents=True)
    assert isinstance(keeper_of(service), Systemd)


@pytest.mark.usefixtures("systemctl")
def test_a_service_that_systemd_keeps_is_not_taken_for_stopped_where_systemd_does_not_answer(service: Service) -> None:
    units = Path.home() / ".config" / "systemd" / "user" / "default.target.wants"
    units.mkdir(parents=True)
    unit = Systemd(service.folder, units.parent).log(service.parts()[0]).split()[-1]
    (units / unit).symlink_to(units.parent / unit)

    with pytest.raises(UsageError, match=r"systemd keeps the service of .* does not answer in this shell"):
        keeper_of(service)


@pytest.fixture
def sleeper(service: Service) -> Iterator[tuple[Detached, Part]]:
    """A part that only sleeps, and its keeper."""
    service.make_folder()
    keeper, part = Detached(service.folder), replace(service.parts()[1], argv=("sleep", "600"))
    yield keeper, part
    keeper.stop(part)


@pytest.mark.matrix  # it sleeps
def test_a_part_that_is_recorded_late_is_known_to_run(
    sleeper: tuple[Detached, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, part = sleeper
    monkeypatch.setattr(detached, "_BECOME", f"sleep 11; {detached._BECOME}")  # noqa: SLF001 - as where the disk is busy

    keeper.start(part)

    assert keeper.is_running(part)


@pytest.mark.timeout(60)
def test_a_part_that_ends_before_it_is_recorded_is_not_waited_for(
    sleeper: tuple[Detached, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, part = sleeper
    monkeypatch.setattr(detached, "_BECOME", "exit 1")

    keeper.start(part)

    assert not keeper.is_running(part)


class Ending(Detached):
    """A keeper whose parts end at their start; `stopped` has those that were stopped."""

    stopped: ClassVar[list[str]] = []

    def is_running(self, part: Part) -> bool:
        """Whether the part runs."""
        del part
        return False

    def start(self, part: Part) -> None:
        """Start nothing, and leave a log."""
        self.log_file(part).write_text("a reason\n")

    def stop(self, part: Part) -> None:
        """Remember it."""
        self.stopped.append(part.name)


def test_a_part_that_ends_at_its_start_is_stopped_so_that_nothing_starts_it_again(service: Service) -> None:
    service.make_folder()

    with pytest.raises(ServerStartError, match="the server ended at its start: a reason"):
        start_part(Ending(service.folder), service.parts()[0], silent)

    assert Ending.stopped == ["server"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "localhost:8080"])
def test_pages_answer_to_this_computer_by_any_of_its_names(pages: str, host: str) -> None:
    assert httpx2.get(pages, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["localhost.example", "[", "", "127.0.0.1.example:80"])
def test_pages_answer_to_no_other_name(pages: str, host: str) -> None:
    assert httpx2.get(pages, headers={"Host": host}).status_code == 403


def test_a_postgresql_that_was_killed_is_not_ready(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        pass
    lines = ["", str(tmp_path), "1", "5432", "", "", "", "ready"]

    for pid, is_alive in ((os.getpid(), True), (ended.pid, False)):
        (tmp_path / "postmaster.pid").write_text("\n".join([str(pid), *lines[1:]]))
        assert postgres.is_ready(tmp_path) is is_alive


def test_a_service_whose_postgresql_was_uninstalled_can_still_be_stopped(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.database.mkdir(parents=True)
    (service.database / "PG_VERSION").write_text("9\n")
    monkeypatch.setattr(postgres, "PACKAGES", service.data / "nothing")
    monkeypatch.setenv("PATH", str(service.data))

    assert [part.name for part in service.parts()] == ["database", "server", "pages", "worker"]
    with pytest.raises(UsageError, match="there is no postgres of PostgreSQL 9"):
        start_part(Running(service.folder), service.parts()[0], silent)


def test_a_port_of_another_program_is_named_with_its_setting_and_nothing_is_started(service: Service) -> None:
    with (
        socket.create_server(("127.0.0.1", service.settings.pages_port)),
        pytest.raises(PortInUseError, match="set NIGHTBENCH_PAGES_PORT to another port"),
    ):
        up(service, silent)

    assert list(service.folder.glob("*.pid")) == []


def test_a_service_whose_folder_cannot_be_written_is_not_started_and_the_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match=f"{tmp_path}/file/data/service/lock cannot be written: Not a directory; set"):
        up(Service(Settings(data=tmp_path / "file" / "data")), silent)


def test_stopping_what_was_never_started_leaves_no_trace_of_a_service(service: Service) -> None:
    assert down(service, silent, stop_night=False) == []

    assert not service.data.exists()


def test_a_service_is_not_stopped_under_a_flow_run(service: Service) -> None:
    service.make_folder()
    with liveness_lock(service.data, "a-run"):
        with pytest.raises(UsageError, match=r"1 flow runs of .* are in progress.*--stop-night"):
            down(service, silent, stop_night=False)
        assert down(service, silent, stop_night=True) == []
    assert down(service, silent, stop_night=False) == []


def test_a_worker_that_was_left_is_ended_and_a_run_whose_worker_was_killed_goes_on(service: Service) -> None:
    own = {MARK: str(service.data)}
    environments = (own, {**own, RUN: "a-run"}, {**own, MARK: "another service"})
    processes = [subprocess.Popen(["/bin/sleep", "600"], env=env) for env in environments]

    running = end_left_worker(service)

    exited = [process.poll() is not None for process in processes]
    for process in processes:
        process.kill()
        process.wait()
    assert running == {"a-run"}
    assert exited == [True, False, False]


def test_the_pages_are_served_with_a_policy_that_runs_no_script_of_a_page(pages: str) -> None:
    start, night = httpx2.get(pages), httpx2.get(f"{pages}/reports/n.html")

    assert (start.text, night.text) == ("start", "night")
    for answer in (start, night):
        scripts = answer.headers["content-security-policy"].split("script-src ")[1].split(";")[0]
        assert "'self'" in scripts
        assert "unsafe-inline" not in scripts


@pytest.mark.parametrize(
    "address",
    [
        *("/ledger.sqlite", "/../ledger.sqlite", "/reports/../../ledger.sqlite", "/reports/%2e%2e/ledger.sqlite"),
        *(
            f"/{TRACE.rpartition('/')[0]}/record.json",
            f"/{TRACE.replace('night', '..')}",
            "/runs/n/../../ledger.sqlite",
        ),
    ],
)
def test_nothing_else_of_the_data_folder_is_served(pages: str, address: str) -> None:
    with socket.create_connection(("127.0.0.1", int(pages.rpartition(":")[2]))) as connection:
        connection.sendall(f"GET {address} HTTP/1.0\r\nHost: 127.0.0.1:1\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))

    assert answer.startswith(b"HTTP/1.0 404")
    assert b"private" not in answer


def test_a_trace_that_a_page_links_is_served_as_a_file(pages: str) -> None:
    answer = httpx2.get(f"{pages}/reports/../{TRACE}")

    assert (answer.text, answer.headers["content-type"]) == ("trace", "application/gzip")


def test_no_folder_is_listed_and_no_foreign_name_is_answered(pages: str) -> None:
    assert httpx2.get(f"{pages}/reports/").status_code == 404
    assert httpx2.get(pages, headers={"Host": "pages.example:80"}).status_code == 403


def test_the_policy_allows_each_script_of_a_page_of_a_night(tmp_path: Path) -> None:
    whole_night(tmp_path, "2026-03-01T010000Z")
    load_night(tmp_path, "2026-03-01T010000Z")

    page = write_report(tmp_path, "2026-03-01T010000Z").read_text("utf-8")

    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    allowed = set(re.findall(r"'sha256-([^']+)'", policy()))
    assert scripts
    assert {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts} <= allowed
    assert re.search(r"<[^>]+ on\w+=", page) is None  # no handler in an attribute, which the policy would stop


def test_a_part_that_answers_late_is_running_and_one_that_never_does_is_not(service: Service) -> None:
    answers = [503, 503, 200]
    keeper = Running(service.folder)

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        part = replace(next(iter(service.parts())), address=f"http://127.0.0.1:{server.server_port}", database=None)

        said: list[str] = []
        assert is_up(keeper, part, said.append)
        assert said == []
        answers[:] = [503]
        assert not is_up(keeper, part, said.append, 1.0)
        assert said == ["the server runs and has not answered for 1 s: it is stopped and started again"]
        server.shutdown()
