"""Engines in containers: install docker, pull the image by its digest, and start and remove containers.

A container belongs to docker's daemon and survives the process that started it. So its name is written to a file
before the start, and it is removed by name.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.engines.by_name import ENGINES
from bench.engines.docker import Container, container_environment, environment_file
from bench.errors import EngineBuildError, ServerStartError
from bench.foreign_json import entries, parse
from bench.suite.scenario import Scenario
from infra.clock import SystemClock, poll
from infra.engines.image_pull import pull
from infra.hardware.gpus import vendor
from infra.processes import cancellation
from infra.processes.command import NOT_FOUND, CommandResult, is_there, run_tool
from infra.reporting import Say

TOOL_TIMEOUT_S = 30.0
REMOVE_TIMEOUT_S = 60.0  # docker waits until the kernel has ended the processes
APT_TIMEOUT_S = 900.0
# A first boot upgrades packages and holds apt's lock for minutes; wait for it, never kill it.
LOCK_PATIENCE_S = 900.0
LOCK_PAUSE_S = 1.0
LOCK_WORDS = ("Could not get lock", "Unable to acquire the dpkg frontend lock", "Unable to lock")
RECORD_ENDING = ".container"


@dataclass(frozen=True)
class ImageAt:
    """An image on this machine: its docker, its name with the digest, and a folder for its compiled kernels."""

    docker: Path
    name: str
    home: Path


def ensure_image(image: str, homes: Path, say: Say, *, may_install: bool) -> ImageAt:
    """Install docker and pull this image (`repository@sha256:...`) unless they are here already.

    Raises EngineBuildError with docker's message, NoSpaceError if the disk is full. `may_install`: whether docker may
    be installed, as on a rented machine.
    """
    docker = ensure_docker(say, may_install=may_install)
    if not _inspect_image(docker, image).is_good:
        pull(docker, image, say)
    digest = _digest_of_image(docker, image)
    if digest is None or not image.endswith(digest):
        raise EngineBuildError(f"{image}: docker has {digest or 'no digest'} for it: remove the image and try again")
    return ImageAt(docker, image, homes / digest.partition(":")[2][:16])


def ensure_docker(say: Say, *, may_install: bool) -> Path:
    """The docker program, once its daemon responds."""
    if not is_there("docker"):
        if not may_install:
            raise EngineBuildError(
                'docker is not installed on this machine: install it, or set install = "venv" in the suite\'s [engine]'
            )
        _install(say)
    version = _docker("version", "--format", "{{.Server.Version}}")
    if not version.is_good and may_install and is_there("systemctl"):
        run_tool(["systemctl", "start", "docker"], timeout_s=TOOL_TIMEOUT_S)
        version = _docker("version", "--format", "{{.Server.Version}}")
    if not version.is_good:
        raise EngineBuildError(f"docker does not respond: {version.why}; start its daemon, or join the group docker")
    return Path("docker")


def _docker(*words: str, timeout_s: float = TOOL_TIMEOUT_S) -> CommandResult:
    return run_tool(["docker", *words], timeout_s=timeout_s)


def _install(say: Say) -> None:
    say("installing docker, which this machine does not have")
    try:
        _apt(["update"], say)
    except EngineBuildError as error:
        say(f"{error}; trying with the present list of packages")  # one bad source fails the whole update
    _apt(["install", "--yes", "--no-install-recommends", "docker.io"], say)


def _apt(words: list[str], say: Say) -> None:
    """Run apt-get, and wait while another process holds its lock."""
    argv = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=60", "--quiet", *words]
    result = run_tool(argv, timeout_s=APT_TIMEOUT_S)
    if _is_locked(result):
        say("another process is installing packages (a first boot does); waiting for it")

    def unlocked() -> CommandResult | None:
        cancellation.check()
        again = run_tool(argv, timeout_s=APT_TIMEOUT_S)
        return None if _is_locked(again) else again

    if _is_locked(result):
        result = poll(SystemClock(), LOCK_PAUSE_S, unlocked, LOCK_PATIENCE_S) or result
    if not result.is_good:
        raise EngineBuildError(f"docker could not be installed: {result.why}")


def _is_locked(result: CommandResult) -> bool:
    return not result.is_good and any(word in result.err for word in LOCK_WORDS)


def _inspect_image(docker: Path, image: str) -> CommandResult:
    return run_tool([str(docker), "image", "inspect", "--format", "{{json .RepoDigests}}", image], timeout_s=60)


def _digest_of_image(docker: Path, image: str) -> str | None:
    """The digest under which docker has an image, as `sha256:...`."""
    inspected = _inspect_image(docker, image)
    try:
        known = [str(one) for one in entries(parse(inspected.out))] if inspected.is_good else []
    except ValueError:
        return None
    # An image may have several names; the requested one counts.
    fitting = [one for one in known if one == image] or known
    return fitting[0].partition("@")[2] if fitting else None


def container_for(image: ImageAt, scenario: Scenario, machine: Path, lease_id: str, port: int) -> Container:
    """Record a server's container before its start, and write its environment to a file with mode 600."""
    has_gpus = scenario.machine.least_gpu_count > 0
    environment = ENGINES[scenario.engine.name].environment(scenario)
    recorded = record_container(image, environment, machine, ContainerUse(lease_id, str(port), has_gpus=has_gpus))
    return replace(recorded, secrets=scenario.engine.secret_environment)


@dataclass(frozen=True)
class ContainerUse:
    """What a container is for: its lease, a word that ends its name, and whether it gets the GPUs of its host."""

    lease_id: str
    ending: str
    has_gpus: bool


def record_container(image: ImageAt, environment: Mapping[str, str], machine: Path, use: ContainerUse) -> Container:
    """Record a container before its start, and write its environment to a file with mode 600."""
    name = f"nb-{use.lease_id}-{use.ending}"
    variables = machine / f"server-{use.ending}.env"
    image.home.mkdir(parents=True, exist_ok=True)
    text = environment_file(container_environment(environment, use.lease_id))
    variables.unlink(missing_ok=True)
    with os.fdopen(os.open(variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sink:
        sink.write(text)
    _record(machine, name).write_text(name)
    maker = vendor() if use.has_gpus else None
    return Container(image.docker, image.name, name, maker, image.home, variables, use.lease_id)


def _record(machine: Path, name: str) -> Path:
    return machine / f"{name}{RECORD_ENDING}"


def digest_of(name: str) -> str | None:
    """The digest of the image that a container runs."""
    inspected = _docker("inspect", "--format", "{{.Image}}", name)
    return _digest_of_image(Path("docker"), inspected.out.strip()) if inspected.is_good else None


def require_digest(name: str, image: str) -> str:
    """The digest of the image that a container runs; ServerStartError if it is not that of `image`."""
    found = digest_of(name)
    if found is None or not image.endswith(found):
        raise ServerStartError(f"the container {name} runs {found or 'an unknown image'} instead of {image}")
    return found


def main_pid(name: str) -> int | None:
    """The pid of the engine in a container, which leads a session of its own; None if it does not run."""
    inspected = _docker("inspect", "--format", "{{.State.Pid}}", name)
    pid = inspected.out.strip()
    return int(pid) if inspected.is_good and pid.isdigit() and int(pid) > 0 else None


def remove(machine: Path, name: str) -> None:
    """Stop and remove a container; may be repeated, and does nothing if it does not exist.

    Raises EngineBuildError if docker fails to remove it: a container that holds the GPU would spoil the next run.
    """
    removed = _docker("rm", "--force", name, timeout_s=REMOVE_TIMEOUT_S)
    # A daemon that does not answer knows the container, perhaps; a computer without docker has none.
    is_gone = removed.is_good or "no such container" in removed.err.lower() or removed.exit_code == NOT_FOUND
    if not is_gone and "no such object" not in _docker("inspect", name).err.lower():
        raise EngineBuildError(f"the container {name} could not be removed: {removed.why}; docker rm --force {name}")
    for port_file in machine.glob(f"server-{name.rpartition('-')[2]}.env"):
        port_file.unlink(missing_ok=True)
    _record(machine, name).unlink(missing_ok=True)


def remove_all(machine: Path) -> None:
    """Remove every container that is recorded in a machine's folder, started or not.

    Raises EngineBuildError if docker fails to remove one, after the others are removed.
    """
    kept: list[EngineBuildError] = []
    for record in sorted(machine.glob(f"*{RECORD_ENDING}")):
        try:
            remove(machine, record.name.removesuffix(RECORD_ENDING))
        except EngineBuildError as error:
            kept.append(error)
    if kept:
        raise kept[0]
