"""The GPUs of this machine as its own tools list them, and the processes that use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.engines.docker import Vendor
from bench.errors import MachineUnfitError, UnreadableResultError
from bench.host import GpuFacts
from bench.machine import gpu_identity, gpu_tools
from bench.machine.gpu_tools import MIB, GpuProcess, InstalledGpu
from infra.clock import SystemClock, poll
from infra.processes.command import CommandResult, is_there, run_tool
from infra.reporting import Say

TOOL_TIMEOUT_S = 60.0  # a healthy tool takes a second or two; on a GPU that hangs it never ends
DOCKER_TIMEOUT_S = 20.0
# An idle MI300X has 284 MiB in use, an H100 a few; more than this belongs to a process.
IDLE_BYTES = 1024 * MIB
POLL_S = 1.0
CSV = "--format=csv,noheader,nounits"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class GpuUse:
    """What uses the GPUs: processes, their containers, and the GPUs with more memory in use than an idle one."""

    processes: tuple[GpuProcess, ...]
    containers: tuple[str, ...]
    busy: tuple[InstalledGpu, ...]

    @property
    def is_clean(self) -> bool:
        """Whether no process uses the GPUs and their memory is free."""
        return not (self.processes or self.busy)

    def __str__(self) -> str:
        """List the users, for an error message."""
        users = [f"{one.name} (pid {one.pid})" for one in self.processes]
        users += [f"the container {name!r}" for name in self.containers]
        users += [f"{(one.used_bytes or 0) / 1e9:.1f} GB in use on GPU {one.index}" for one in self.busy]
        return ", ".join(dict.fromkeys(users)) or "no process"


def read_gpus() -> tuple[InstalledGpu, ...]:
    """Every GPU that amd-smi or nvidia-smi lists; none if neither is installed.

    Raises MachineUnfitError, with the tool's message, if the tool fails, hangs or prints an unknown format.
    """
    if is_there("amd-smi"):
        return _readable(lambda: gpu_tools.amd_gpus(_ask("amd-smi", "static", "--json"), _amd("metric")))
    if is_there("nvidia-smi"):
        query = f"--query-gpu={','.join(gpu_tools.NVIDIA_GPUS)}"
        return _readable(lambda: gpu_tools.nvidia_gpus(_ask("nvidia-smi", query, CSV)))
    return ()


def read_identities() -> tuple[tuple[GpuFacts, ...], str | None]:
    """What identifies and configures each GPU, and the version of CUDA; nothing where no tool says it."""
    try:
        if is_there("amd-smi"):
            firmware = _said("amd-smi", "firmware", "--json")
            return gpu_identity.amd_identities(_ask("amd-smi", "static", "--json"), _amd("list"), firmware), None
        if is_there("nvidia-smi"):
            described = _said("nvidia-smi", "-q")
            query = f"--query-gpu={','.join(gpu_identity.NVIDIA_IDENTITY)}"
            version = gpu_identity.cuda_version(described)
            return gpu_identity.nvidia_identities(_ask("nvidia-smi", query, CSV), described), version
    except (MachineUnfitError, UnreadableResultError):
        return (), None
    return (), None


def _said(*argv: str) -> str:
    """The answer to a question that not every version and GPU answers; nothing where it is refused."""
    done = run_tool(argv, timeout_s=TOOL_TIMEOUT_S)
    return done.out if done.is_good else ""


def read_processes() -> tuple[GpuProcess, ...]:
    """Every process that uses memory of a GPU."""
    if is_there("amd-smi"):
        return _readable(lambda: gpu_tools.amd_processes(_amd("process")))
    if is_there("nvidia-smi"):
        query = f"--query-compute-apps={','.join(gpu_tools.NVIDIA_PROCESSES)}"
        return _readable(lambda: gpu_tools.nvidia_processes(_ask("nvidia-smi", query, CSV)))
    return ()


def _amd(command: str) -> str:
    return _ask("amd-smi", command, "--json")


def _ask(*argv: str) -> str:
    done = run_tool(argv, timeout_s=TOOL_TIMEOUT_S)
    if done.exit_code is None:
        raise MachineUnfitError(f"the GPU of this machine does not respond: {done.why}; use another machine")
    if not done.is_good:
        raise MachineUnfitError(f"the GPU driver of this machine fails: {done.why}; use another machine")
    return done.out


def _readable(read: Callable[[], _Found]) -> _Found:
    try:
        return read()
    except UnreadableResultError as error:
        raise MachineUnfitError(f"the output of this machine's GPU tool has an unknown format: {error}") from error


def require_gpus(count: int, model: str | None) -> tuple[InstalledGpu, ...]:
    """The GPUs of this machine; MachineUnfitError if they are fewer than `count` or of another `model`."""
    found = read_gpus()
    if not found:
        raise MachineUnfitError(
            f"the suite requires {count} GPUs, and neither amd-smi nor nvidia-smi lists one on this machine; "
            "choose an image with a GPU driver (such as gpu-amd-base), or another machine"
        )
    if len(found) < count:
        raise MachineUnfitError(
            f"the suite requires {count} GPUs, and this machine has {len(found)} ({found[0].name}): "
            "change machine.gpu_count or machine.kind"
        )
    others = [gpu.name for gpu in found if model is not None and _plain(model) not in _plain(gpu.name)]
    if others:
        raise MachineUnfitError(f"the suite requires {model}, and this machine has {others[0]}: change machine.kind")
    return found


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def read_use() -> GpuUse:
    """What uses the GPUs now."""
    holders = read_processes()
    busy = tuple(gpu for gpu in read_gpus() if (gpu.used_bytes or 0) > IDLE_BYTES)
    containers = _containers({one.pid for one in holders}) if holders or busy else ()
    return GpuUse(holders, containers, busy)


def _containers(pids: set[int]) -> tuple[str, ...]:
    """The running containers of these processes; every running one if `pids` is empty."""
    if not is_there("docker"):
        return ()
    names = run_tool(["docker", "ps", "--format", "{{.Names}}"], timeout_s=DOCKER_TIMEOUT_S).out.split()
    return tuple(name for name in names if not pids or pids & _pids_of(name))


def _pids_of(container: str) -> set[int]:
    top: CommandResult = run_tool(["docker", "top", container, "-eo", "pid"], timeout_s=DOCKER_TIMEOUT_S)
    return {int(word) for word in top.out.split() if word.isdigit()}


def require_idle(patience_s: float, stoppable: Sequence[str], say: Say) -> None:
    """Wait until the GPUs are idle, and stop containers named `stoppable`; MachineUnfitError lists what still runs.

    The workers of a killed engine hold its memory for a while, hence `patience_s`.
    """
    use = read_use()
    for name in [name for name in use.containers if name in stoppable]:
        say(f"stopping the container {name!r}, which the image started and which uses the GPU")
        run_tool(["docker", "stop", name], timeout_s=DOCKER_TIMEOUT_S)
        use = read_use()

    def is_clean() -> bool:
        nonlocal use
        use = read_use()
        return use.is_clean

    if not use.is_clean and not poll(SystemClock(), POLL_S, is_clean, patience_s):
        stop = f"docker stop {use.containers[0]}" if use.containers else "end it"
        raise MachineUnfitError(f"the GPUs are still in use after {patience_s:g} s, by {use}: {stop}, and run again")


def vendor() -> Vendor | None:
    """The vendor of this machine's GPUs, by the tool that is installed."""
    if is_there("amd-smi"):
        return "amd"
    return "nvidia" if is_there("nvidia-smi") else None
