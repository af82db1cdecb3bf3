"""Check that this machine can run a suite, and on a rented one change settings and disks so that it can."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.errors import MachineUnfitError, NoSpaceError
from bench.machine.gpu_tools import InstalledGpu
from infra.hardware.gpus import require_gpus, require_idle
from infra.hardware.scratch_disk import find_scratch, is_whole_machine
from infra.reporting import Say

NUMA_BALANCING = Path("/proc/sys/kernel/numa_balancing")
CLEAN_PATIENCE_S = 120.0  # the workers of a killed engine free their memory within a minute or two
IMAGE_CONTAINERS = ("rocm",)  # started by images of the cloud; they use the GPU


@dataclass(frozen=True)
class MachineRequirements:
    """What a suite requires. `is_rented`: the machine is ours alone, so its settings and disks may be changed."""

    folder: str  # our folder on the machine; the scratch disk is mounted below it
    gpu_count: int = 0  # 0: GPUs are not checked
    gpu: str | None = None  # part of its name, such as MI300X
    memory_bytes: int = 0
    disk_bytes: int = 0  # for models and images, free on the scratch disk, or on that of `folder`
    is_rented: bool = False
    clean_patience_s: float = CLEAN_PATIENCE_S


@dataclass(frozen=True)
class Fitness:
    """The machine as found; None or empty for what it does not have."""

    gpus: tuple[InstalledGpu, ...]
    memory_bytes: int
    numa_balancing_before: int | None
    numa_balancing: int | None  # after it was switched off, if allowed
    scratch: str | None  # where the scratch disk is mounted
    free_bytes: int  # on the scratch disk, else in our folder


def check_machine(required: MachineRequirements, say: Say) -> Fitness:
    """Check memory, GPUs, NUMA balancing and disks, the cheapest first, and change what may be changed.

    Raises MachineUnfitError, and NoSpaceError if the disk is too small. May be repeated.
    """
    memory = psutil.virtual_memory().total
    if memory < required.memory_bytes:
        raise MachineUnfitError(
            f"this machine has {memory / 1e9:.0f} GB of memory, {required.memory_bytes / 1e9:.0f} GB are required: "
            "change machine.kind"
        )
    gpus = _check_gpus(required, say)
    may_change = required.is_rented and is_whole_machine()
    before = read_numa_balancing()
    after = numa_balancing_off(may_change=may_change, say=say) if required.gpu_count else before
    folder = Path(required.folder)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = find_scratch(folder / "scratch", say) if may_change else None
    free = shutil.disk_usage(scratch or folder).free
    if free < required.disk_bytes:
        raise NoSpaceError(
            f"{scratch or folder} has {free / 1e9:.0f} GB free, {required.disk_bytes / 1e9:.0f} GB are required: "
            "use a machine with a larger disk"
        )
    return Fitness(gpus, memory, before, after, str(scratch) if scratch else None, free)


def _check_gpus(required: MachineRequirements, say: Say) -> tuple[InstalledGpu, ...]:
    if required.gpu_count == 0:
        return ()
    gpus = require_gpus(required.gpu_count, required.gpu)
    say(f"{len(gpus)} x {gpus[0].name}, driver {gpus[0].driver or 'unknown'}")
    require_idle(required.clean_patience_s, IMAGE_CONTAINERS if required.is_rented else (), say)
    return gpus


def read_numa_balancing() -> int | None:
    """Whether the kernel moves pages between memory nodes by itself (0: no); None if it cannot."""
    try:
        return int(NUMA_BALANCING.read_text())
    except (OSError, ValueError):
        return None


def numa_balancing_off(*, may_change: bool, say: Say) -> int | None:
    """Switch NUMA balancing off if allowed, and return its state; one round of it can stall a GPU."""
    if not read_numa_balancing():
        return read_numa_balancing()
    try:
        if may_change:
            NUMA_BALANCING.write_text("0")
    except OSError as error:
        say(f"NUMA balancing could not be switched off: {error}")
    if read_numa_balancing():
        say(f"NUMA balancing is on, which can stall a GPU: echo 0 > {NUMA_BALANCING}")
    return read_numa_balancing()
