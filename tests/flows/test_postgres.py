"""Prefect on PostgreSQL: the one that `nightbench up --postgres` starts in the data folder, or one of the user's."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.errors import UsageError
from flows.service import postgres
from flows.service.keepers import keeper_of
from flows.service.parts import Service
from flows.service.start import down, up
from flows.service.status import Status, read_status
from infra.clock import SystemClock, poll
from infra.reporting import silent
from infra.settings import Settings
from tests.flows.postgres_folder import postgres_folder
from tests.flows.serving import free_port

pytestmark = pytest.mark.prefect
SCHEDULED_S = 60.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with postgres_folder() as made:
        yield made


@pytest.fixture
def service(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))  # no systemd of this user
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    made = Service(Settings(data=folder / "data", service_port=free_port(), pages_port=free_port()))
    yield made
    down(made, silent, stop_night=True)


def status_with_a_night(service: Service) -> Status:
    """The status once the server's scheduler, which looks every few seconds, has made a run of the schedule."""
    poll(SystemClock(), 0.5, lambda: read_status(service).next_night is not None, SCHEDULED_S)
    return read_status(service)


@pytest.mark.matrix
def test_up_keeps_prefects_runs_in_a_postgresql_of_its_own_and_down_ends_it(service: Service) -> None:
    said: list[str] = []

    started = up(service, said.append, with_postgres=True)
    first = status_with_a_night(service)
    (keeper := keeper_of(service)).stop(service.parts()[1])  # the server; what it kept is in PostgreSQL
    again = up(service, said.append)

    assert started == ["database", "server", "pages", "worker"]
    assert first.parts == dict.fromkeys(started, "running")
    assert first.next_night is not None
    assert again == ["server"]
    assert not any("deploying" in line for line in said[said.index("starting the worker") :])
    assert not list(service.folder.rglob("prefect.db"))
    assert down(service, silent, stop_night=False) == ["worker", "pages", "server", "database"]
    assert not any(keeper.is_running(part) for part in service.parts())
    assert "database system is shut down" in (service.folder / "database.log").read_text("utf-8")


@pytest.fixture
def of_the_user(folder: Path) -> Iterator[SecretStr]:
    """A database that somebody else started."""
    made = folder / "theirs"
    postgres.make(made, silent)
    process = subprocess.Popen(postgres.argv(made), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    yield SecretStr(postgres.url(made))
    process.terminate()
    process.wait(timeout=60)


@pytest.mark.matrix  # what differs from the one of our own is where the URL comes from
def test_up_uses_the_database_that_the_settings_name(service: Service, of_the_user: SecretStr) -> None:
    theirs = Service(service.settings.model_copy(update={"database_url": of_the_user}))

    assert up(theirs, silent) == ["server", "pages", "worker"]

    assert status_with_a_night(theirs).next_night is not None
    assert not list(theirs.folder.rglob("prefect.db"))
    assert down(theirs, silent, stop_night=False) == ["worker", "pages", "server"]


def test_two_databases_are_refused(tmp_path: Path) -> None:
    service = Service(Settings(data=tmp_path, database_url=SecretStr("postgresql+asyncpg://them@elsewhere/prefect")))

    with pytest.raises(UsageError, match="--postgres and NIGHTBENCH_DATABASE_URL are two databases"):
        up(service, silent, with_postgres=True)


def test_a_path_that_is_too_long_for_a_socket_is_refused_before_anything_is_made(folder: Path) -> None:
    long = folder / ("a" * 100)

    with pytest.raises(UsageError, match="choose a data folder with a shorter path"):
        postgres.make(long, silent)

    assert not long.exists()


def test_a_database_whose_making_was_killed_is_made_again(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, program = folder / "postgres", tmp_path / "initdb"
    program.write_text('#!/bin/sh\necho 15 > "$2/PG_VERSION"\nexec sleep 60\n')  # what initdb writes first
    program.chmod(0o755)
    with monkeypatch.context() as killed:
        killed.setattr("flows.service.postgres._as_own_user", tuple)
        killed.setattr("flows.service.postgres._program", lambda _name, _folder: program)
        killed.setattr("flows.service.postgres.MAKE_S", 0.5)
        with pytest.raises(subprocess.TimeoutExpired):  # which ends it by SIGKILL
            postgres.make(made, silent)
    assert not postgres.is_made(made)

    postgres.make(made, silent)

    assert postgres.is_made(made)
    assert (made / "global" / "pg_control").exists()
    assert [path.name for path in folder.iterdir()] == ["postgres"]


def test_a_computer_without_postgresql_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("flows.service.postgres.PACKAGES", tmp_path)

    with pytest.raises(UsageError, match=r"no initdb of PostgreSQL on PATH or in .*: install the package postgresql"):
        postgres.make(tmp_path / "postgres", silent)

    assert list(tmp_path.iterdir()) == []
