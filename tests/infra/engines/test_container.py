import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.engines import vllm
from bench.engines.by_name import ENGINES
from bench.engines.docker import container_argv
from bench.errors import EngineBuildError, LoadDriverError, NoSpaceError, ServerStartError
from bench.loadgen.drivers.target import LoadTarget
from bench.suite.engine import Disaggregated
from bench.suite.machine import Machine
from infra.clouds.local import LocalCloud
from infra.engines import container, image_pull, server, server_facts
from infra.engines.install import ready_engine
from infra.engines.server import RunningServer
from infra.loadgen import driver
from infra.processes import detached
from tests.infra.benches import pid_of
from tests.infra.container_requests import quiet, scenario, settings, what
from tests.infra.docker import DIGEST, IMAGE, Docker
from tests.infra.fake_tools import FakeTools, amd
from tests.planted import SECRETS, found_below, found_in, plant


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Docker]:
    fake = Docker(tmp_path / "docker", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    monkeypatch.setattr(image_pull, "PAUSES_S", (0.01, 0.01, 0.01))
    yield fake
    detached.end(detached.marked(tmp_path.name), patience_s=0.1)


def test_an_image_is_pulled_once_and_reported(docker: Docker, tmp_path: Path) -> None:
    said: list[str] = []

    first = ready_engine(scenario().engine, settings(tmp_path), said.append, is_rented=False)
    second = ready_engine(scenario().engine, settings(tmp_path), said.append, is_rented=False)

    assert first == second
    assert (first.image, first.executable) == (IMAGE, Path("docker"))
    assert docker.calls.count(f"pull {IMAGE}") == 1
    assert said == [f"pulling {IMAGE}"]


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("manifest unknown", EngineBuildError, "it does not exist: check its name and digest"),
        ("no space left on device", NoSpaceError, "docker's disk is full"),
    ],
)
def test_a_pull_that_fails_permanently_is_not_repeated(
    docker: Docker, tmp_path: Path, fault: str, error: type[Exception], words: str
) -> None:
    docker.breaks(fault)

    with pytest.raises(error, match=words):
        ready_engine(scenario().engine, settings(tmp_path), quiet, is_rented=False)

    assert docker.calls.count(f"pull {IMAGE}") == 1


def test_a_pull_that_was_cut_off_is_repeated(docker: Docker, tmp_path: Path) -> None:
    docker.breaks("connection reset by peer", "toomanyrequests")
    said: list[str] = []

    ready_engine(scenario().engine, settings(tmp_path), said.append, is_rented=False)

    assert docker.calls.count(f"pull {IMAGE}") == 3
    assert [line for line in said if "failed" in line and "connection reset by peer" in line]


def test_a_registry_that_limits_pulls_is_reported_after_the_last_try(docker: Docker, tmp_path: Path) -> None:
    docker.breaks(*["toomanyrequests"] * 9)

    with pytest.raises(EngineBuildError, match=r"in 4 tries: .*the registry limits pulls: run docker login here"):
        ready_engine(scenario().engine, settings(tmp_path), quiet, is_rented=False)


def test_a_pull_without_output_is_ended_and_repeated(
    docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_pull, "SILENCE_S", 1.0)
    docker.breaks("silence")
    said: list[str] = []

    ready_engine(scenario().engine, settings(tmp_path), said.append, is_rented=False)

    assert [line for line in said if "no output from docker for 1 s" in line]


def test_an_image_of_another_digest_is_refused(docker: Docker, tmp_path: Path) -> None:
    ready_engine(scenario().engine, settings(tmp_path), quiet, is_rented=False)
    docker.breaks("other digest", "other digest")

    with pytest.raises(EngineBuildError, match=f"{IMAGE}: docker has sha256:{'9' * 64} for it"):
        container.ensure_image(IMAGE, tmp_path, quiet, may_install=False)


def test_missing_docker_is_an_error_on_a_machine_that_is_not_rented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.folder))

    with pytest.raises(EngineBuildError, match=r"docker is not installed on this machine: install it, or set install"):
        ready_engine(scenario().engine, settings(tmp_path), quiet, is_rented=False)


def test_a_docker_daemon_that_does_not_respond_is_quoted(docker: Docker, tmp_path: Path) -> None:
    (docker.state / "no daemon").touch()

    with pytest.raises(EngineBuildError, match=r"docker does not respond: .*Is the docker daemon running\?"):
        ready_engine(scenario().engine, settings(tmp_path), quiet, is_rented=False)


def test_docker_is_installed_on_a_rented_machine_after_its_first_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "LOCK_PAUSE_S", 0.01)
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tools.folder}:/usr/bin:/bin")
    locked = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 611 (apt-get)"
    wait = f'if [ ! -e {tmp_path}/waited ]; then echo "{locked}" >&2; echo > {tmp_path}/waited; exit 100; fi'
    tools.says("apt-get", "", when="--quiet update", then=wait)
    fake = tools.folder / "docker"
    ready = "#!/bin/sh\\necho 28.2.2\\n"
    make = f"printf '{ready}' > {fake}; /bin/chmod +x {fake}"
    tools.says("apt-get", "", when="--quiet install --yes --no-install-recommends docker.io", then=make)
    monkeypatch.setattr(container, "is_there", lambda name: (tools.folder / name).exists())
    said: list[str] = []

    container.ensure_docker(said.append, may_install=True)

    assert said[0] == "installing docker, which this machine does not have"
    assert said[1].startswith("another process is installing packages (a first boot does)")
    assert len(tools.called("apt-get")) == 3


def test_docker_is_installed_although_one_source_of_packages_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tools.folder}:/usr/bin:/bin")
    monkeypatch.setattr(container, "is_there", lambda _name: False)
    tools.says("apt-get", "E: The repository does not have a Release file.", when="update", exit_code=100)
    tools.says("apt-get", "", when="install")
    tools.says("docker", "28.2.2")
    said: list[str] = []

    container.ensure_docker(said.append, may_install=True)

    assert said[1].endswith("Release file.; trying with the present list of packages")


def test_an_install_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tools.folder}:/usr/bin:/bin")
    monkeypatch.setattr(container, "is_there", lambda _name: False)
    tools.says("apt-get", "E: Unable to locate package docker.io", exit_code=100)

    with pytest.raises(EngineBuildError, match=r"docker could not be installed: .*Unable to locate package"):
        container.ensure_docker(quiet, may_install=True)


def test_a_server_in_a_container_reports_its_facts_and_its_image(docker: Docker, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario()), quiet)

    found = server_facts.look(running)

    assert (found.engine_version, found.served_model, found.max_model_len) == ("0.32.0", "small", 4096)
    assert found.image_digest == DIGEST
    assert found.argv[:3] == ("docker", "run", "--rm")
    assert running.engine_session == docker.state_of(str(running.container))["pid"]
    server.stop(running)


def test_a_stopped_server_leaves_no_container_and_no_file(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario())
    running = server.bring_up(asked, quiet)

    server.stop(running)
    server.stop(running)

    assert docker.containers == []
    assert detached.marked(asked.lease_id) == []
    assert list(asked.machine.iterdir()) == []


def test_two_servers_behind_a_router_are_two_containers(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(disaggregated=Disaggregated()))
    running = server.bring_up(asked, quiet)
    counted = vllm.counters(server.metrics(running))

    assert (len(docker.containers), sorted(docker.containers)) == (2, sorted(running.containers))
    assert counted["prefill_prompt_tokens_total"] == counted["prompt_tokens_total"] > 0
    assert "kv_producer" in " ".join(running.prefill_argv)

    server.stop(running)

    assert docker.containers == []
    assert detached.marked(asked.lease_id) == []
    assert list(asked.machine.iterdir()) == []


def test_a_container_whose_client_was_killed_is_removed_by_its_name(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario())
    running = server.bring_up(asked, quiet)
    os.kill(pid_of(running), signal.SIGKILL)
    assert docker.containers == [running.container]

    server.stop(running)

    assert docker.containers == []
    assert detached.marked(asked.lease_id) == []


def test_a_released_machine_keeps_no_container_of_a_killed_night(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario())
    running = server.bring_up(asked, quiet)
    os.kill(pid_of(running), signal.SIGKILL)

    LocalCloud(tmp_path / "machines").release(tmp_path.name)

    assert docker.containers == []
    assert not asked.machine.exists()


def test_a_container_that_docker_fails_to_remove_is_an_error(docker: Docker, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario()), quiet)
    os.kill(pid_of(running), signal.SIGKILL)
    docker.breaks("stuck")

    with pytest.raises(EngineBuildError, match=r"could not be removed: .*device or resource busy"):
        server.stop(running)

    server.stop(running)
    assert docker.containers == []


def test_a_container_stays_recorded_while_the_daemon_does_not_answer(docker: Docker, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario()), quiet)
    os.kill(pid_of(running), signal.SIGKILL)
    (docker.state / "no daemon").touch()

    with pytest.raises(EngineBuildError, match=r"could not be removed: .*Is the docker daemon running\?"):
        server.stop(running)

    (docker.state / "no daemon").unlink()
    server.stop(running)
    assert docker.containers == []


def test_an_engine_that_fails_in_its_container_is_quoted(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(environment={"TRUTH_FAULT": "oom_at_start"}))

    with pytest.raises(ServerStartError, match=r"larger than the available KV cache memory .*oom_kv_len"):
        server.bring_up(asked, quiet)

    assert docker.containers == []


def test_an_engines_variables_are_in_no_argv_but_in_a_file_with_mode_600(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario(environment={"API_KEY": "very-secret"}))

    running = server.bring_up(asked, quiet)

    state = docker.state_of(str(running.container))
    file = asked.machine / f"server-{running.port}.env"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "very-secret" not in " ".join(running.argv)
    assert not [call for call in docker.calls if "very-secret" in call]
    environment = state["environment"]
    assert isinstance(environment, dict)
    assert environment["API_KEY"] == "very-secret"
    assert environment["NIGHTBENCH_LEASE"] == tmp_path.name
    server.stop(running)


@pytest.mark.usefixtures("docker")
def test_an_engines_secret_reaches_its_process_and_no_argv_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "ENGINE_LICENSE_KEY")
    asked = what(tmp_path, scenario(secret_environment=("ENGINE_LICENSE_KEY",)))

    running = server.bring_up(asked, quiet)

    assert running.session is not None
    inside, client = psutil.Process(running.session), psutil.Process(running.pid)
    assert inside.environ()["ENGINE_LICENSE_KEY"] == SECRETS["ENGINE_LICENSE_KEY"]
    assert found_in(repr((inside.cmdline(), client.cmdline(), running)).encode()) == set()
    assert found_below(tmp_path) == {}
    server.stop(running)


def test_the_model_is_read_only_and_compiled_kernels_are_kept(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario())

    running = server.bring_up(asked, quiet)

    options = docker.state_of(str(running.container))["options"]
    assert isinstance(options, dict)
    home = tmp_path / "cache" / "engine-homes" / DIGEST[7:23]
    assert options["--volume"] == [f"{tmp_path}:{tmp_path}:ro", f"{home}:/cache"]
    assert home.is_dir()
    server.stop(running)


def test_a_profiler_in_a_container_writes_into_a_folder_of_the_host(docker: Docker, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()

    running = server.bring_up(replace(what(tmp_path, scenario()), written=folder), quiet)

    options = docker.state_of(str(running.container))["options"]
    assert isinstance(options, dict)
    assert options["--volume"][-1] == f"{folder}:{folder}"
    server.stop(running)


def test_docker_run_never_pulls_an_image(docker: Docker, tmp_path: Path) -> None:
    asked = what(tmp_path, scenario())
    (docker.state / "images").unlink()

    with pytest.raises(ServerStartError, match="No such image"):
        server.bring_up(asked, quiet)

    assert docker.calls.count(f"pull {IMAGE}") == 1


def test_clients_that_are_part_of_an_engine_are_refused(docker: Docker, tmp_path: Path) -> None:
    del docker
    asked = what(tmp_path, scenario())
    work = asked.scenario.workload.model_copy(update={"driver": "vllm-bench"})
    running = RunningServer(1, 1, tmp_path, tmp_path, (), {}, asked.engine, 0.0, containers=("one",))
    told = asked.scenario.model_copy(update={"workload": work})
    load = driver.LoadJob(told, LoadTarget("", "", tmp_path, 1), 0, 1.0, 1.0, tmp_path, "", tmp_path)

    with pytest.raises(LoadDriverError, match="use the meter"):
        driver.driver_argv(load, running)


def test_amd_gpus_are_passed_to_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.folder))
    amd(tools)
    asked = scenario().model_copy(update={"machine": Machine(gpu_count=1)})
    image = container.ImageAt(Path("docker"), IMAGE, tmp_path / "home")

    told = container.container_for(image, asked, tmp_path, "lease", 8000)
    argv = container_argv(told, ENGINES["vllm"].argv(Path("vllm"), asked, tmp_path / "model", 8000), tmp_path / "model")

    text = " ".join(argv)
    assert "--device /dev/kfd --device /dev/dri --group-add video" in text
    assert "--network host --ipc host --cap-add SYS_PTRACE --security-opt seccomp=unconfined" in text
    assert "--name nb-lease-8000 --label nightbench.lease=lease" in text
    assert text.index("--entrypoint vllm") < text.index(IMAGE) < text.index(f"serve {tmp_path}/model --host 127.0.0.1")


def test_nvidia_gpus_are_passed_to_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = FakeTools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tools.folder))
    tools.says("nvidia-smi", "")
    asked = scenario().model_copy(update={"machine": Machine(gpu_count=1)})
    image = container.ImageAt(Path("docker"), IMAGE, tmp_path / "home")

    told = container.container_for(image, asked, tmp_path, "lease", 8000)

    assert "--gpus all" in " ".join(container_argv(told, ["vllm"], tmp_path))


def test_a_container_ends_when_its_client_gets_sigterm(docker: Docker, tmp_path: Path) -> None:
    running = server.bring_up(what(tmp_path, scenario()), quiet)

    os.kill(pid_of(running), signal.SIGTERM)

    until = time.monotonic() + 300
    while docker.containers and time.monotonic() < until:
        time.sleep(0.05)
    assert docker.containers == []
    server.stop(running)
    assert subprocess.run(["docker", "rm", "--force", str(running.container)], check=False).returncode == 1
