import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.errors import EngineBuildError, ModelError
from bench.suite.engine import Engine
from infra.agent.prepare import PrepareRequest, prepare_engine_and_model, run_in_parallel
from infra.processes import cancellation, detached
from infra.processes.cancellation import CancelledError
from infra.processes.command import run_tool
from infra.processes.file_lock import exclusive_lock
from infra.settings import Settings
from tests.emulators.hub import HubEmulator
from tests.infra.docker import IMAGE, Docker
from tests.infra.models.tiny import copy_tiny_model

SLEEPS = [sys.executable, "-c", "import time; time.sleep(300)"]
ENGINE = Engine(version="0.32.0", max_model_len=4096, install="container", image=IMAGE)


def quiet(_line: str) -> None:
    return None


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < end, "not true after 300 s"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("prepare")] == []


def test_jobs_run_at_the_same_time_and_each_ones_time_is_known() -> None:
    meet = threading.Barrier(2, timeout=300)  # opens only if both jobs run

    done = run_in_parallel({"engine": lambda: meet.wait() * 0 + 1, "model": lambda: meet.wait() * 0 + 2})

    assert done.results == {"engine": 1, "model": 2}
    assert set(done.stage_s) == {"engine", "model"}


def test_the_first_failure_ends_the_program_that_another_job_waits_for() -> None:
    began = time.monotonic()
    started = threading.Event()

    def slow() -> None:
        started.set()
        run_tool(SLEEPS, timeout_s=300)

    def fails() -> None:
        started.wait()
        raise ModelError("no such model")

    with pytest.raises(ModelError, match="no such model"):
        run_in_parallel({"engine": slow, "model": fails})

    assert time.monotonic() - began < 60


def test_a_program_that_is_started_after_the_failure_ends_at_once() -> None:
    failed = threading.Event()

    def late() -> None:
        failed.wait()
        time.sleep(0.1)
        run_tool(SLEEPS, timeout_s=300)

    def fails() -> None:
        failed.set()
        raise ModelError("no such model")

    began = time.monotonic()
    with pytest.raises(ModelError):
        run_in_parallel({"engine": late, "model": fails})

    assert time.monotonic() - began < 60


def test_a_job_that_waits_for_a_lock_is_stopped_too(tmp_path: Path) -> None:
    locked = threading.Event()

    def waits() -> None:
        with exclusive_lock(tmp_path / "lock", lambda _line: locked.set(), "building"):
            pytest.fail("somebody else has it")

    def fails() -> None:
        assert locked.wait(60)
        raise ModelError("no such model")

    with exclusive_lock(tmp_path / "lock", quiet, "testing"), pytest.raises(ModelError):
        run_in_parallel({"engine": waits, "model": fails})


def test_work_without_a_cancel_token_is_never_cancelled() -> None:
    cancellation.check()
    with subprocess.Popen(["true"]) as program, cancellation.waiting_for(program):
        program.wait()


def test_a_program_of_cancelled_work_is_killed_with_its_session() -> None:
    token = cancellation.CancelToken()
    argv = ["sh", "-c", "sleep 300 & echo $!; wait"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True, text=True) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())

        def wait() -> None:
            with cancellation.cancellable(token), cancellation.waiting_for(program):
                token.cancel()
                program.wait(60)

        with pytest.raises(CancelledError):
            wait()

    until(lambda: not detached.is_alive(child))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubEmulator]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    copy_tiny_model(tmp_path / "repository")
    with HubEmulator(tmp_path / "repository") as emulator:
        yield emulator


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    fake = Docker(tmp_path / "docker", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    return fake


def request(hub: HubEmulator, tmp_path: Path, sha: str | None = None) -> PrepareRequest:
    return PrepareRequest(ENGINE, f"hf:org/small@{sha or hub.sha}", tmp_path / "models", lease_id=tmp_path.name)


def settings(hub: HubEmulator, tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "cache", hub_endpoint=hub.url, hub_stall_s=20.0)


def test_an_image_and_a_model_are_fetched_at_the_same_time(hub: HubEmulator, docker: Docker, tmp_path: Path) -> None:
    found = prepare_engine_and_model(request(hub, tmp_path), settings(hub, tmp_path), quiet)

    assert found.engine.image == IMAGE
    assert found.model.revision == hub.sha
    assert found.stage_s.keys() == {"engine", "model"}
    assert docker.calls.count(f"pull {IMAGE}") == 1


def test_a_model_that_does_not_exist_stops_the_pull(hub: HubEmulator, docker: Docker, tmp_path: Path) -> None:
    docker.breaks("silence")
    began = time.monotonic()

    with pytest.raises(ModelError, match="org/small has no commit"):
        prepare_engine_and_model(request(hub, tmp_path, "0" * 40), settings(hub, tmp_path), quiet)

    assert time.monotonic() - began < 45


def test_an_image_that_does_not_exist_stops_the_download(hub: HubEmulator, docker: Docker, tmp_path: Path) -> None:
    hub.fault("stall", "model.safetensors", after=1000, times=99)
    docker.breaks("manifest unknown")

    with pytest.raises(EngineBuildError, match="it does not exist: check its name"):
        prepare_engine_and_model(request(hub, tmp_path), settings(hub, tmp_path), quiet)

    assert detached.marked(tmp_path.name) == []
