"""What an earlier server left running is ended before the next one starts; others' processes are only named."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.engines import server
from infra.engines.launch import ServerRequest
from infra.engines.orphans import SERVER, end_orphans
from infra.processes import detached
from infra.processes.environment import child_environment
from tests.infra.benches import pid_of
from tests.infra.engines.test_server import what

__all__ = ["what"]
WORKER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


def start(*words: str, **environment: str) -> "subprocess.Popen[str]":
    """A process in a session of its own, as a worker that has left its server's."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *words],
        env=child_environment(environment),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_a_worker_of_an_earlier_server_is_ended_before_the_next_one_starts(
    what: ServerRequest, processes: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    ours, of_another_folder = start(**{SERVER: str(what.machine)}), start(**{SERVER: str(tmp_path / "another")})
    processes += [ours, of_another_folder]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    said: list[str] = []

    running = server.bring_up(what, said.append)

    assert ours.poll() is not None
    assert of_another_folder.poll() is None
    assert any(f"an earlier server left running: process {ours.pid} (" in line for line in said)
    assert {process.pid for process in detached.marked(str(what.machine), SERVER)} >= {running.pid}
    server.stop(running)


def test_a_server_whose_pid_file_is_left_is_ended(what: ServerRequest) -> None:
    left = server.bring_up(what, lambda _line: None)

    end_orphans(what.machine, lambda _line: None)

    assert not detached.is_alive(pid_of(left))
    assert left.pid_file is not None
    assert not left.pid_file.exists()


def test_the_server_of_somebody_else_is_named_and_left_alone(
    tmp_path: Path, processes: list["subprocess.Popen[str]"]
) -> None:
    other = tmp_path / "vllm"
    other.write_text("import time; print('up', flush=True); time.sleep(600)")
    theirs = subprocess.Popen([sys.executable, str(other), "serve"], stdout=subprocess.PIPE, text=True)
    processes.append(theirs)
    assert theirs.stdout is not None
    theirs.stdout.readline()
    said: list[str] = []

    end_orphans(tmp_path, said.append)

    assert theirs.poll() is None
    assert [line for line in said if f"is left alone: process {theirs.pid} (" in line]
