"""The GPUs of this machine: what its own tools see, and whether anybody is using them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.engines.docker import Vendor
from bench.errors import MachineUnfitError, UnreadableResultError
from bench.machine import gpu_tools
from bench.machine.gpu_tools import MIB, GpuProcess, InstalledGpu
from infra.clock import SteadyClock, poll
from infra.processes.command import CommandResult, is_there, run_tool
from infra.reporting import Say

TOOL_TIMEOUT_S = 60.0  # a healthy tool takes a second or two; one that asks a wedged GPU never ends
DOCKER_TIMEOUT_S = 20.0
# An idle MI300X has 284 MiB in use, an H100 a few: more than this is somebody's.
IDLE_BYTES = 1024 * MIB
POLL_S = 1.0
CSV = "--format=csv,noheader,nounits"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class GpuUse:
    """Who uses the GPUs: processes, containers they run in, and the GPUs with more memory in use than an idle one."""

    processes: tuple[GpuProcess, ...]
    containers: tuple[str, ...]
    busy: tuple[InstalledGpu, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nobody is there and all memory is free."""
        return not (self.processes or self.busy)

    def __str__(self) -> str:
        """Who it is, for a sentence."""
        said = [f"{one.name} (pid {one.pid})" for one in self.processes]
        said += [f"the container {name!r}" for name in self.containers]
        said += [f"{(one.used_bytes or 0) / 1e9:.1f} GB in use on GPU {one.index}" for one in self.busy]
        return ", ".join(said) or "nobody"


def read_gpus() -> tuple[InstalledGpu, ...]:
    """Every GPU that a tool of this machine sees; none where it has no such tool.

    Raises MachineUnfitError in the tool's own words where it fails, hangs or cannot be read.
    """
    if is_there("amd-smi"):
        return _readable(lambda: gpu_tools.amd_gpus(_ask("amd-smi", "static", "--json"), _amd("metric")))
    if is_there("nvidia-smi"):
        asked = f"--query-gpu={','.join(gpu_tools.NVIDIA_GPUS)}"
        return _readable(lambda: gpu_tools.nvidia_gpus(_ask("nvidia-smi", asked, CSV)))
    return ()


def read_processes() -> tuple[GpuProcess, ...]:
    """Every process that holds memory of a GPU."""
    if is_there("amd-smi"):
        return _readable(lambda: gpu_tools.amd_processes(_amd("process")))
    if is_there("nvidia-smi"):
        asked = f"--query-compute-apps={','.join(gpu_tools.NVIDIA_PROCESSES)}"
        return _readable(lambda: gpu_tools.nvidia_processes(_ask("nvidia-smi", asked, CSV)))
    return ()


def _amd(what: str) -> str:
    return _ask("amd-smi", what, "--json")


def _ask(*argv: str) -> str:
    said = run_tool(argv, timeout_s=TOOL_TIMEOUT_S)
    if said.exit_code is None:
        raise MachineUnfitError(f"the GPU of this machine is wedged: {said.why}; take another machine")
    if not said.is_good:
        raise MachineUnfitError(f"the GPU driver of this machine does not answer: {said.why}; take another machine")
    return said.out


def _readable(read: Callable[[], _Found]) -> _Found:
    try:
        return read()
    except UnreadableResultError as error:
        raise MachineUnfitError(f"the GPU tool of this machine is of an unknown kind: {error}") from error


def demand_gpus(count: int, model: str | None) -> tuple[InstalledGpu, ...]:
    """The GPUs of this machine, at least `count` of them and of the asked `model`; else MachineUnfitError."""
    found = read_gpus()
    if not found:
        raise MachineUnfitError(
            f"the suite asks for {count} GPUs, and this machine shows none: neither amd-smi nor nvidia-smi found one; "
            "choose an image with a GPU driver (gpu-amd-base, say), or another machine"
        )
    if len(found) < count:
        raise MachineUnfitError(
            f"the suite asks for {count} GPUs, and this machine has {len(found)} ({found[0].name}): "
            "change machine.gpu_count or machine.kind"
        )
    others = [gpu.name for gpu in found if model is not None and _plain(model) not in _plain(gpu.name)]
    if others:
        raise MachineUnfitError(f"the suite asks for {model}, and this machine has {others[0]}: change machine.kind")
    return found


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def read_use() -> GpuUse:
    """Who uses the GPUs now."""
    holders = read_processes()
    busy = tuple(gpu for gpu in read_gpus() if (gpu.used_bytes or 0) > IDLE_BYTES)
    containers = _containers({one.pid for one in holders}) if holders or busy else ()
    return GpuUse(holders, containers, busy)


def _containers(pids: set[int]) -> tuple[str, ...]:
    """The running containers with one of these processes; every running one where no process is known."""
    if not is_there("docker"):
        return ()
    names = run_tool(["docker", "ps", "--format", "{{.Names}}"], timeout_s=DOCKER_TIMEOUT_S).out.split()
    return tuple(name for name in names if not pids or pids & _pids_of(name))


def _pids_of(container: str) -> set[int]:
    top: CommandResult = run_tool(["docker", "top", container, "-eo", "pid"], timeout_s=DOCKER_TIMEOUT_S)
    return {int(word) for word in top.out.split() if word.isdigit()}


def demand_clean(patience_s: float, stoppable: Sequence[str], say: Say) -> None:
    """Wait until nobody uses the GPUs; containers named `stoppable` are stopped. MachineUnfitError says who stays.

    A killed engine's workers hold its memory for a while, hence the patience.
    """
    use = read_use()
    for name in [name for name in use.containers if name in stoppable]:
        say(f"stopping the container {name!r}, which came with the image and holds the GPU")
        run_tool(["docker", "stop", name], timeout_s=DOCKER_TIMEOUT_S)
        use = read_use()

    def is_clean() -> bool:
        nonlocal use
        use = read_use()
        return use.is_clean

    if not use.is_clean and not poll(SteadyClock(), POLL_S, is_clean, patience_s):
        stop = f"docker stop {use.containers[0]}" if use.containers else "end it"
        raise MachineUnfitError(f"the GPUs are in use by {use}, still after {patience_s:g} s: {stop}, and run again")


def vendor() -> Vendor | None:
    """Who made this machine's GPUs, by the tool that it has for them."""
    if is_there("amd-smi"):
        return "amd"
    return "nvidia" if is_there("nvidia-smi") else None
