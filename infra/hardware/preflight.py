"""Whether this machine is fit to measure on, and what was done to make it so; asked on the machine itself."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.errors import MachineUnfitError, NoSpaceError
from bench.machine.gpu_tools import InstalledGpu
from infra.hardware.gpus import demand_clean, demand_gpus
from infra.hardware.scratch_disk import find_scratch, is_whole_machine
from infra.reporting import Say

NUMA_BALANCING = Path("/proc/sys/kernel/numa_balancing")
CLEAN_PATIENCE_S = 120.0  # a killed engine's workers give their memory back within a minute or two
IMAGE_CONTAINERS = ("rocm",)  # what images of the cloud start by themselves, and what holds the GPU


@dataclass(frozen=True)
class MachineRequirements:
    """What a suite needs of a machine. `is_rented`: it is ours alone, so settings, disks and containers are too."""

    folder: str  # our one folder on the machine; the scratch disk is mounted below it
    gpu_count: int = 0  # 0: the GPUs are not looked at
    gpu: str | None = None  # a part of its name: MI300X
    memory_bytes: int = 0
    disk_bytes: int = 0  # for models and images, free on the scratch disk, or on that of `folder`
    is_rented: bool = False
    clean_patience_s: float = CLEAN_PATIENCE_S


@dataclass(frozen=True)
class Fitness:
    """The machine as found; what it does not have is None or empty."""

    gpus: tuple[InstalledGpu, ...]
    memory_bytes: int
    numa_balancing_before: int | None
    numa_balancing: int | None  # after we switched it off, where we may
    scratch: str | None  # where the scratch disk is mounted
    free_bytes: int  # there, or in our folder


def check_machine(demand: MachineRequirements, say: Say) -> Fitness:
    """Look at everything a night stumbles over, cheapest first, and make fit what may be; else MachineUnfitError.

    May be repeated. NoSpaceError where the disk is too small.
    """
    memory = psutil.virtual_memory().total
    if memory < demand.memory_bytes:
        raise MachineUnfitError(
            f"this machine has {memory / 1e9:.0f} GB of memory, {demand.memory_bytes / 1e9:.0f} GB are needed: "
            "change machine.kind"
        )
    gpus = _fit_gpus(demand, say)
    may_change = demand.is_rented and is_whole_machine()
    before = read_numa_balancing()
    after = numa_balancing_off(may_change=may_change, say=say) if demand.gpu_count else before
    folder = Path(demand.folder)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = find_scratch(folder / "scratch", say) if may_change else None
    free = shutil.disk_usage(scratch or folder).free
    if free < demand.disk_bytes:
        raise NoSpaceError(
            f"{scratch or folder} has {free / 1e9:.0f} GB free, {demand.disk_bytes / 1e9:.0f} GB are needed: "
            "take a machine with a larger disk"
        )
    return Fitness(gpus, memory, before, after, str(scratch) if scratch else None, free)


def _fit_gpus(demand: MachineRequirements, say: Say) -> tuple[InstalledGpu, ...]:
    if demand.gpu_count == 0:
        return ()
    gpus = demand_gpus(demand.gpu_count, demand.gpu)
    say(f"{len(gpus)} x {gpus[0].name}, driver {gpus[0].driver or 'unknown'}")
    demand_clean(demand.clean_patience_s, IMAGE_CONTAINERS if demand.is_rented else (), say)
    return gpus


def read_numa_balancing() -> int | None:
    """Whether the kernel moves pages between memory nodes by itself (0: no); None where it cannot."""
    try:
        return int(NUMA_BALANCING.read_text())
    except (OSError, ValueError):
        return None


def numa_balancing_off(*, may_change: bool, say: Say) -> int | None:
    """Switch balancing off where we may, and return how it stands: it can hang a GPU until a round of it is over."""
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
