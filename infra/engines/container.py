"""Engines in containers: docker on this machine, the image by its digest, and containers that never stay behind.

A container is no child of ours: it belongs to docker's daemon and survives the program that asked for it. So its name
is written down before it is started, and it is removed by name.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from bench.engines.by_name import ENGINES
from bench.engines.docker import Container, container_environment, environment_file
from bench.errors import EngineBuildError, ServerStartError
from bench.suite.scenario import Scenario
from infra.clock import SteadyClock, poll
from infra.engines.image_pull import pull
from infra.hardware.gpus import vendor
from infra.processes import cancellation
from infra.processes.command import CommandResult, is_there, run_tool
from infra.reporting import Say

TOOL_TIMEOUT_S = 30.0
REMOVE_TIMEOUT_S = 60.0  # docker waits for the kernel to let the processes go
APT_TIMEOUT_S = 900.0
# A first boot upgrades packages by itself and holds the lock for minutes; it is waited for, never killed.
LOCK_PATIENCE_S = 900.0
LOCK_PAUSE_S = 1.0
LOCK_WORDS = ("Could not get lock", "Unable to acquire the dpkg frontend lock", "Unable to lock")
RECORD_ENDING = ".container"


@dataclass(frozen=True)
class ImageAt:
    """An image on this machine: the docker that has it, its name with its digest, and a home for what it compiles."""

    docker: Path
    name: str
    home: Path


def ensure_image(image: str, homes: Path, say: Say, *, may_install: bool) -> ImageAt:
    """Have docker and this image (`repository@sha256:...`) here; repeating it costs a moment.

    Raises EngineBuildError in docker's own words, NoSpaceError where the disk is full. Docker itself is installed
    only with `may_install`: a rented machine is ours to change, another is not.
    """
    docker = ensure_docker(say, may_install=may_install)
    if not _inspect_image(docker, image).is_good:
        pull(docker, image, say)
    digest = _digest_of_image(docker, image)
    if digest is None or not image.endswith(digest):
        raise EngineBuildError(f"docker has {digest or 'nothing'} under the name {image}: remove that image and repeat")
    return ImageAt(docker, image, homes / digest.partition(":")[2][:16])


def ensure_docker(say: Say, *, may_install: bool) -> Path:
    """The docker program, with a daemon that answers."""
    if not is_there("docker"):
        if not may_install:
            raise EngineBuildError(
                'there is no docker on this machine: install it, or say install = "venv" in the suite\'s [engine]'
            )
        _install(say)
    asked = _docker("version", "--format", "{{.Server.Version}}")
    if not asked.is_good and may_install and is_there("systemctl"):
        run_tool(["systemctl", "start", "docker"], timeout_s=TOOL_TIMEOUT_S)
        asked = _docker("version", "--format", "{{.Server.Version}}")
    if not asked.is_good:
        raise EngineBuildError(f"docker does not answer on this machine: {asked.why}; start it, or join its group")
    return Path("docker")


def _docker(*words: str, timeout_s: float = TOOL_TIMEOUT_S) -> CommandResult:
    return run_tool(["docker", *words], timeout_s=timeout_s)


def _install(say: Say) -> None:
    say("installing docker, which this image does not have")
    try:
        _apt(["update"], say)
    except EngineBuildError as error:
        say(f"{error}; trying with the list of packages that is there")  # one bad source of many fails it all
    _apt(["install", "--yes", "--no-install-recommends", "docker.io"], say)


def _apt(words: list[str], say: Say) -> None:
    """Run apt-get, waiting for whoever has its lock."""
    argv = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=60", "--quiet", *words]
    result = run_tool(argv, timeout_s=APT_TIMEOUT_S)
    if _is_locked(result):
        say("another process is installing packages (a first boot does); waiting for it")

    def unlocked() -> CommandResult | None:
        cancellation.check()
        again = run_tool(argv, timeout_s=APT_TIMEOUT_S)
        return None if _is_locked(again) else again

    if _is_locked(result):
        result = poll(SteadyClock(), LOCK_PAUSE_S, unlocked, LOCK_PATIENCE_S) or result
    if not result.is_good:
        raise EngineBuildError(f"docker could not be installed: {result.why}")


def _is_locked(result: CommandResult) -> bool:
    return not result.is_good and any(word in result.err for word in LOCK_WORDS)


def _inspect_image(docker: Path, image: str) -> CommandResult:
    return run_tool([str(docker), "image", "inspect", "--format", "{{json .RepoDigests}}", image], timeout_s=60)


def _digest_of_image(docker: Path, image: str) -> str | None:
    """The digest under which docker has an image, as `sha256:...`."""
    said = _inspect_image(docker, image)
    try:
        known = [str(one) for one in json.loads(said.out) or []] if said.is_good else []
    except ValueError:
        return None
    # An image may be known under several names; the one that was asked for counts.
    fitting = [one for one in known if one == image] or known
    return fitting[0].partition("@")[2] if fitting else None


def container_for(image: ImageAt, scenario: Scenario, machine: Path, lease_id: str, port: int) -> Container:
    """Write down a container that is about to be started, and put its environment into a file that only we can read."""
    name = f"nb-{lease_id}-{port}"
    variables = machine / f"server-{port}.env"
    image.home.mkdir(parents=True, exist_ok=True)
    text = environment_file(container_environment(ENGINES[scenario.engine.name].environment(scenario), lease_id))
    variables.unlink(missing_ok=True)
    with os.fdopen(os.open(variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sink:
        sink.write(text)
    _record(machine, name).write_text(name)
    # The GPUs of an alternative are not counted by the suite, and this computer's are not given unasked.
    has_gpus = scenario.machine.gpu_count or scenario.machine.kind != "local"
    maker = vendor() if has_gpus else None
    return Container(image.docker, image.name, name, maker, image.home, variables, lease_id)


def _record(machine: Path, name: str) -> Path:
    return machine / f"{name}{RECORD_ENDING}"


def digest_of(name: str) -> str | None:
    """The digest of the image that a container really runs."""
    said = _docker("inspect", "--format", "{{.Image}}", name)
    return _digest_of_image(Path("docker"), said.out.strip()) if said.is_good else None


def demand_digest(name: str, asked: str) -> str:
    """The digest of what runs; ServerStartError where it is not what was asked for."""
    found = digest_of(name)
    if found is None or not asked.endswith(found):
        raise ServerStartError(f"the container {name} runs {found or 'an unknown image'}, and {asked} was asked for")
    return found


def main_pid(name: str) -> int | None:
    """The engine's own process on this machine, which leads a session of its own; None where there is none."""
    said = _docker("inspect", "--format", "{{.State.Pid}}", name)
    pid = said.out.strip()
    return int(pid) if said.is_good and pid.isdigit() and int(pid) > 0 else None


def remove(machine: Path, name: str) -> None:
    """End a container and remove it; may be repeated, and one that is gone is no error.

    Raises EngineBuildError where docker keeps it: a container that holds the GPU spoils whatever comes next.
    """
    said = _docker("rm", "--force", name, timeout_s=REMOVE_TIMEOUT_S)
    if not said.is_good and "No such container" not in said.err and _docker("inspect", name).is_good:
        raise EngineBuildError(f"the container {name} could not be removed: {said.why}; docker rm --force {name}")
    for port_file in machine.glob(f"server-{name.rpartition('-')[2]}.env"):
        port_file.unlink(missing_ok=True)
    _record(machine, name).unlink(missing_ok=True)


def remove_all(machine: Path) -> None:
    """Remove every container that was written down in a machine's folder, started or not."""
    for record in sorted(machine.glob(f"*{RECORD_ENDING}")):
        remove(machine, record.name.removesuffix(RECORD_ENDING))
