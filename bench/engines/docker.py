"""Docker: the argv and environment that run any engine in a container, with the GPUs of its host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import UsageError

Vendor = Literal["amd", "nvidia"]
LEASE_LABEL = "nightbench.lease"  # on each container of ours, beside its name
CACHE_INSIDE = "/cache"
# The options that give a container the GPUs of its host, by GPU vendor.
DEVICES: dict[Vendor, tuple[str, ...]] = {
    "amd": ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"),
    "nvidia": ("--gpus", "all"),
}


@dataclass(frozen=True)
class Container:
    """A container to start: docker's executable, the image by digest, the container's name and its lease.

    `cache` stays on the host for the next start. `secrets` names the variables that docker's client passes on from its
    own environment. `written` is a folder of the host that the command runs in.
    """

    docker: Path
    image: str
    name: str
    vendor: Vendor | None  # None: no GPUs
    cache: Path
    environment_file: Path
    lease_id: str
    secrets: tuple[str, ...] = ()
    written: Path | None = None


def container_argv(container: Container, command: Sequence[str], model: Path | None) -> tuple[str, ...]:
    """The argv that runs this command in the container, on the host's network.

    The model keeps its path and is mounted read-only; None: the command has none. Docker pulls nothing here: the image
    is already on the host.
    """
    program, *arguments = command
    return (
        *(str(container.docker), "run", "--rm", "--pull", "never", "--name", container.name),
        *("--label", f"{LEASE_LABEL}={container.lease_id}"),
        *("--network", "host", "--ipc", "host"),
        *("--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined"),
        *(DEVICES[container.vendor] if container.vendor else ()),
        *(("--volume", f"{model}:{model}:ro") if model else ()),
        *("--volume", f"{container.cache}:{CACHE_INSIDE}"),
        *(_written(container.written) if container.written else ()),
        *(word for name in container.secrets for word in ("--env", name)),
        *("--env-file", str(container.environment_file), "--entrypoint", program, container.image, *arguments),
    )


def _written(folder: Path) -> tuple[str, ...]:
    return "--volume", f"{folder}:{folder}", "--workdir", str(folder)


def container_environment(engine: Mapping[str, str], lease_id: str) -> dict[str, str]:
    """The variables of an engine in a container; HOME is the cache, so that compiled kernels survive a restart."""
    home = {"HOME": CACHE_INSIDE, "XDG_CACHE_HOME": CACHE_INSIDE}
    return {**home, "NIGHTBENCH_LEASE": lease_id, **engine}


def environment_file(values: Mapping[str, str]) -> str:
    """The text that `docker run --env-file` reads; UsageError where a value holds a line break."""
    for name, value in values.items():
        if "\n" in value or "\r" in value:
            raise UsageError(
                f"engine.environment.{name} holds a line break, which `docker run --env-file` cannot pass: remove it"
            )
    return "".join(f"{name}={value}\n" for name, value in values.items())
