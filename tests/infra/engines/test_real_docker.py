"""What tests of containers assume of docker, with the real one, where its daemon runs."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import psutil
import pytest

from bench.errors import EngineBuildError, ServerStartError
from infra.clock import SystemClock, poll
from infra.clouds.local import LocalCloud
from infra.engines import container, server, server_facts
from infra.engines.canary import CanaryRequest, run_canary
from infra.engines.install import ready_engine
from infra.processes import detached
from infra.remote.cleanup import end_marked
from infra.remote.host import Host
from tests.emulators.registry import RegistryEmulator
from tests.infra.benches import pid_of
from tests.infra.container_requests import quiet, scenario, settings, what
from tests.infra.real_docker import containers, docker, push_engine, require_daemon

pytestmark = pytest.mark.matrix  # `make test` runs them with the fake one
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryEmulator]:
    require_daemon()
    with RegistryEmulator() as registry:
        yield registry


@pytest.fixture(scope="module")
def image(registry: RegistryEmulator) -> Iterator[str]:
    name = push_engine(registry)
    yield name
    docker("rmi", name)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, registry: RegistryEmulator) -> Iterator[None]:
    del registry
    yield
    left = containers()
    if left:
        docker("rm", "--force", *left)
    detached.end(detached.marked(tmp_path.name), patience_s=0.1)
    assert left == []


def test_an_image_is_pulled_once_by_its_digest(image: str, registry: RegistryEmulator, tmp_path: Path) -> None:
    docker("rmi", image)
    said: list[str] = []

    first = ready_engine(scenario(image).engine, settings(tmp_path), said.append, is_rented=False)
    pulled = len(registry.requests)
    second = ready_engine(scenario(image).engine, settings(tmp_path), said.append, is_rented=False)

    assert first == second
    assert (first.image, said) == (image, [f"pulling {image}"])
    assert len(registry.requests) == pulled


def test_a_digest_that_the_registry_does_not_have_is_not_asked_for_again(
    image: str, registry: RegistryEmulator, tmp_path: Path
) -> None:
    unknown = f"{image.partition('@')[0]}@sha256:{'0' * 64}"
    before = len(registry.requests)

    with pytest.raises(EngineBuildError, match="it does not exist: check its name and digest"):
        container.ensure_image(unknown, tmp_path, quiet, may_install=False)

    assert [one for one in registry.requests[before:] if one.endswith("0" * 64)][1:] == []


def test_a_server_in_a_container_has_its_facts_its_image_and_its_variables_and_leaves_nothing(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_LICENSE_KEY", "a secret")
    folder = tmp_path / "trace"
    folder.mkdir()
    secret = {"environment": {"OMP_NUM_THREADS": "1"}, "secret_environment": ("ENGINE_LICENSE_KEY",)}
    asked = replace(what(tmp_path, scenario(image, **secret)), written=folder)

    running = server.bring_up(asked, quiet)

    found = server_facts.look(running)
    assert (found.engine_version, found.served_model, found.max_model_len) == ("0.32.0", "small", 4096)
    assert found.image_digest == image.partition("@")[2]
    assert running.engine_session is not None
    inside = psutil.Process(running.engine_session)
    variables = inside.environ()
    assert (variables["OMP_NUM_THREADS"], variables["ENGINE_LICENSE_KEY"]) == ("1", "a secret")
    assert (variables["HOME"], variables["NIGHTBENCH_LEASE"]) == ("/cache", asked.lease_id)
    assert "a secret" not in " ".join(psutil.Process(running.pid).cmdline())
    name = str(running.container)
    for place, is_writable in ((tmp_path, False), (folder, True), (Path("/cache"), True)):
        tried = docker("exec", name, "python3", "-c", f"open({str(place / 'new')!r}, 'w')")
        assert (tried.returncode == 0) is is_writable, tried.stderr

    server.stop(running)
    server.stop(running)

    assert (containers(), detached.marked(asked.lease_id), list(asked.machine.iterdir())) == ([], [], [])


def test_a_container_whose_client_was_killed_is_removed_by_its_name(image: str, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(image))
    running = server.bring_up(asked, quiet)
    os.kill(pid_of(running), signal.SIGKILL)
    assert containers() == [running.container]

    server.stop(running)

    assert (containers(), detached.marked(asked.lease_id)) == ([], [])


def test_a_container_ends_when_its_client_gets_sigterm(image: str, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario(image)), quiet)

    os.kill(pid_of(running), signal.SIGTERM)

    assert poll(SystemClock(), 0.1, lambda: not containers(), PATIENCE_S)
    server.stop(running)


def test_a_released_machine_keeps_no_container_of_a_killed_night(image: str, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(image))
    os.kill(pid_of(server.bring_up(asked, quiet)), signal.SIGKILL)

    LocalCloud(tmp_path / "machines").release(tmp_path.name)

    assert containers() == []
    assert not asked.machine.exists()


class ThisComputer:
    """A machine that is reached without SSH."""

    def output_of(self, script: str, *, timeout_s: float) -> str:
        return subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=timeout_s
        ).stdout


def test_a_rented_machine_keeps_no_container_of_a_lease_and_every_other_one(image: str, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario(image)), quiet)
    machine = cast("Host", ThisComputer())
    end_marked(machine, tmp_path.name[:-1])
    assert containers() == [running.container]

    end_marked(machine, tmp_path.name)

    assert containers() == []
    server.stop(running)


def test_an_engine_that_fails_in_its_container_is_quoted(image: str, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(image, environment={"TRUTH_FAULT": "oom_at_start"}))

    with pytest.raises(ServerStartError, match=r"larger than the available KV cache memory .*oom_kv_len"):
        server.bring_up(asked, quiet)


def test_docker_run_never_pulls_an_image(image: str, registry: RegistryEmulator, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(image))
    docker("rmi", image)
    before = len(registry.requests)

    with pytest.raises(ServerStartError, match=r"No such image|Unable to find image"):
        server.bring_up(asked, quiet)

    assert len(registry.requests) == before


def test_the_canary_runs_in_the_image_and_leaves_no_container(image: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(bytes(1 << 20))
    (tmp_path / "machine").mkdir()
    engine = ready_engine(scenario(image).engine, settings(tmp_path), quiet, is_rented=False)

    record = run_canary(
        CanaryRequest(engine, tmp_path / "model", tmp_path / "machine", tmp_path.name, "before", timeout_s=300), quiet
    )

    assert [one.test for one in record.results] == ["disk_read"]
    assert str(record.reason).startswith("torch cannot be imported by /")
